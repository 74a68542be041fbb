#include "device_scope.h"

#include "cuda_call.h"

namespace linkcheck::trt {

DeviceScope::DeviceScope(int device) {
  status_ = cuda_status(cudaGetDevice(&former_), "cudaGetDevice");
  if (!status_.ok() || former_ == device) return;
  status_ = cuda_status(cudaSetDevice(device), "cudaSetDevice");
  switched_ = status_.ok();
}

DeviceScope::~DeviceScope() {
  if (switched_) cuda_succeeded(cudaSetDevice(former_), "cudaSetDevice (restoring)");
}

}  // namespace linkcheck::trt
