// A second CUDA delegate, independent of the first: it copies its input to its output on the stream
// that the caller selected. It shares nothing with TensorRTBackend but libextension_cuda.so, and
// waits for nothing.
#include <cuda_runtime_api.h>
#include <executorch/extension/cuda/caller_stream.h>
#include <executorch/runtime/backend/interface.h>

namespace {

using namespace executorch::runtime;  // NOLINT: a test's library

class CopyBackend final : public BackendInterface {
 public:
  bool is_available() const override { return true; }
  Result<DelegateHandle*> init(BackendInitContext&, FreeableBuffer*,
                               ArrayRef<CompileSpec>) const override {
    static int handle = 0;
    return static_cast<DelegateHandle*>(&handle);
  }
  Error execute(BackendExecutionContext&, DelegateHandle*, Span<EValue*> arguments) const override {
    const auto stream =
        executorch::extension::cuda::getCallerStream().value_or(cudaStreamPerThread);
    const auto& from = arguments[0]->toTensor();
    auto& to = arguments[1]->toTensor();
    const cudaError_t result = cudaMemcpyAsync(to.mutable_data_ptr(), from.const_data_ptr(),
                                               from.nbytes(), cudaMemcpyDeviceToDevice, stream);
    return result == cudaSuccess ? Error::Ok : Error::Internal;
  }
};

CopyBackend backend;
const auto registered = register_backend({"CopyBackend", &backend});

}  // namespace
