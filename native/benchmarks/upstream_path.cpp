#include "upstream_path.h"

#include <executorch/extension/cuda/caller_stream.h>
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>

#include <array>
#include <stdexcept>

namespace benchmark {
namespace {

class Logger final : public nvinfer1::ILogger {
  void log(Severity, nvinfer1::AsciiChar const*) noexcept override {}
};

}  // namespace

UpstreamPath::UpstreamPath(const std::string& plan) {
  static auto* logger = new Logger();
  runtime_.reset(nvinfer1::createInferRuntime(*logger));
  engine_.reset(runtime_->deserializeCudaEngine(plan.data(), plan.size()));
  if (engine_ == nullptr) throw std::runtime_error("the engine is refused");
  context_.reset(engine_->createExecutionContext());
  input_ = engine_->getIOTensorName(0);
  output_ = engine_->getIOTensorName(1);
  if (cudaEventCreateWithFlags(&done_, cudaEventDisableTiming | cudaEventBlockingSync) !=
      cudaSuccess) {
    throw std::runtime_error("no event");
  }
}

UpstreamPath::~UpstreamPath() {
  cudaEventSynchronize(done_);
  cudaEventDestroy(done_);
}

bool UpstreamPath::bind(const char* name, const executorch::aten::Tensor& tensor, bool is_input) {
  if (is_input) {
    // Bounds of the profile, kept from loading, are compared here; that costs next to nothing.
    nvinfer1::Dims dims{};
    dims.nbDims = static_cast<int32_t>(tensor.dim());
    for (int32_t i = 0; i < dims.nbDims; ++i) dims.d[i] = tensor.size(i);
    if (!context_->setInputShape(name, dims)) return false;
  }
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, tensor.const_data_ptr()) != cudaSuccess) return false;
  if (attributes.type != cudaMemoryTypeDevice) return false;
  return context_->setTensorAddress(name, tensor.mutable_data_ptr());
}

bool UpstreamPath::execute(executorch::runtime::EValue** values) {
  int device = -1;
  if (cudaGetDevice(&device) != cudaSuccess || device != 0) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (in_flight_) {
    if (cudaEventSynchronize(done_) != cudaSuccess) return false;
    in_flight_ = false;
  }
  const auto chosen = executorch::extension::cuda::getCallerStream();
  const cudaStream_t stream = chosen.value_or(cudaStreamPerThread);
  if (!bind(input_.c_str(), values[0]->toTensor(), true)) return false;
  const char* missing[8];
  if (context_->inferShapes(8, missing) != 0) return false;
  auto& output = values[1]->toTensor();
  const nvinfer1::Dims dims = context_->getTensorShape(output_.c_str());
  std::array<executorch::aten::SizesType, 8> sizes{};
  for (int32_t i = 0; i < dims.nbDims; ++i) {
    sizes[static_cast<size_t>(i)] = static_cast<executorch::aten::SizesType>(dims.d[i]);
  }
  if (executorch::runtime::resize_tensor(output,
                                         {sizes.data(), static_cast<size_t>(dims.nbDims)}) !=
      executorch::runtime::Error::Ok) {
    return false;
  }
  if (!bind(output_.c_str(), output, false)) return false;
  if (!context_->enqueueV3(stream)) return false;
  if (cudaEventRecord(done_, stream) != cudaSuccess) return false;
  in_flight_ = true;
  return true;
}

}  // namespace benchmark
