#include "device_scope.h"

#include "cuda_call.h"

namespace linkcheck::trt {

DeviceScope::DeviceScope(int device, const DriverApi& driver) : driver_(driver) {
  status_ = cuda_status(cudaGetDevice(&former_), "cudaGetDevice");
  if (!status_.ok() || former_ == device) return;
  if (driver_.get_current != nullptr && driver_.set_current != nullptr) {
    status_ = driver_status(driver_.get_current(&former_context_), "cuCtxGetCurrent");
    if (!status_.ok()) return;
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
