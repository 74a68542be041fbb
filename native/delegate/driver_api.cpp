#include "driver_api.h"

#include <string>

#include "cuda_call.h"

namespace linkcheck::trt {
namespace {

// Null when the driver has no such function. `version` chooses between the forms that one function
// had, as 1000 * major + 10 * minor.
Outcome<void*> look_up(const char* name, unsigned int version) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  const cudaError_t result =
      cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &status);
#else
  static_cast<void>(version);
  const cudaError_t result = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &status);
#endif
  Status looked_up = cuda_status(result, "cudaGetDriverEntryPoint");
  if (!looked_up.ok()) return std::move(looked_up.failure());
  return status == cudaDriverEntryPointSuccess ? found : nullptr;
}

// Keeps the first failure of several look-ups.
class Loader {
 public:
  template <typename Function>
  void take(const char* name, unsigned int version, Function& function) {
    if (!status_.ok()) return;
    auto found = look_up(name, version);
    if (!found.ok()) {
      status_ = std::move(found.failure());
    } else if (found.value() == nullptr) {
      status_ = Failure{Error::NotFound, std::string("the CUDA driver has no ") + name};
    } else {
      function = reinterpret_cast<Function>(found.value());
    }
  }
  Status& status() { return status_; }

 private:
  Status status_;
};

}  // namespace

Outcome<DriverApi> DriverApi::load() {
  DriverApi api;
  Loader loader;
  loader.take("cuDeviceGet", 2000, api.get_device);
  loader.take("cuDevicePrimaryCtxRetain", 7000, api.retain_primary);
  loader.take("cuDevicePrimaryCtxRelease", 11000, api.release_primary);
  loader.take("cuCtxGetCurrent", 4000, api.get_current);
  loader.take("cuCtxSetCurrent", 4000, api.set_current);
  loader.take("cuCtxPushCurrent", 4000, api.push_current);
  loader.take("cuCtxPopCurrent", 4000, api.pop_current);
  loader.take("cuStreamGetCtx", 9020, api.get_stream_context);
  loader.take("cuStreamIsCapturing", 10000, api.is_capturing);
  loader.take("cuPointerGetAttributes", 7000, api.get_pointer_attributes);
  loader.take("cuEventRecord", 2000, api.record_event);
  loader.take("cuEventQuery", 2000, api.query_event);
  if (!loader.status().ok()) return std::move(loader.status().failure());
#if CUDA_VERSION >= 12050
  auto contexts = look_up("cuStreamGetCtx", 12050);
  if (!contexts.ok()) return std::move(contexts.failure());
  api.get_stream_contexts = reinterpret_cast<decltype(api.get_stream_contexts)>(contexts.value());
#endif
  return api;
}

Status driver_status(CUresult result, const char* what) {
  return cuda_status(static_cast<cudaError_t>(result), what);
}

Outcome<CUcontext> find_primary_context(const DriverApi& driver, int device) {
  CUdevice handle = 0;
  CUcontext context = nullptr;
  Status status = driver_status(driver.get_device(&handle, device), "cuDeviceGet");
  if (status.ok()) {
    status = driver_status(driver.retain_primary(&context, handle), "cuDevicePrimaryCtxRetain");
  }
  if (!status.ok()) return std::move(status.failure());
  // The runtime holds it, too, so it stays what it is.
  status = driver_status(driver.release_primary(handle), "cuDevicePrimaryCtxRelease");
  if (!status.ok()) return std::move(status.failure());
  return context;
}

}  // namespace linkcheck::trt
