#include "device_scope.h"

#include "cuda_call.h"

namespace linkcheck::trt {

DeviceScope::DeviceScope(int device, const DriverApi& driver, CUcontext primary) : driver_(driver) {
  status_ = driver_status(driver_.get_current(&former_context_), "cuCtxGetCurrent");
  if (!status_.ok() || (primary != nullptr && former_context_ == primary)) return;
  status_ = cuda_status(cudaGetDevice(&former_), "cudaGetDevice");
  if (!status_.ok()) return;
  if (former_ == device) {
    // A thread that used no CUDA yet: the driver's functions want the context that the runtime
    // would make current with its first call.
    if (former_context_ == nullptr) status_ = cuda_status(cudaFree(nullptr), "cudaFree");
    return;
  }
  status_ = cuda_status(cudaSetDevice(device), "cudaSetDevice");
  switched_ = status_.ok();
}

DeviceScope::~DeviceScope() {
  if (!switched_) return;
  // The device alone would bring back its primary context, whatever was current there.
  if (former_context_ != nullptr &&
      cuda_succeeded(static_cast<cudaError_t>(driver_.set_current(former_context_)),
                     "cuCtxSetCurrent (restoring)")) {
    return;
  }
  cuda_succeeded(cudaSetDevice(former_), "cudaSetDevice (restoring)");
}

}  // namespace linkcheck::trt
