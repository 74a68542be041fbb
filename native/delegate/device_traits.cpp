#include "device_traits.h"

#include "cuda_call.h"

namespace linkcheck::trt {
namespace {

bool has(int device, cudaDeviceAttr attribute, const char* what) {
  int value = 0;
  return cuda_succeeded(cudaDeviceGetAttribute(&value, attribute, device), what) && value != 0;
}

}  // namespace

DeviceTraits read_device_traits(int device) {
  DeviceTraits traits;
  traits.device = device;
  // Sharing the memory is not enough: older integrated GPUs see only what was allocated for them.
  traits.reads_host_memory =
      has(device, cudaDevAttrIntegrated, "cudaDevAttrIntegrated") &&
      has(device, cudaDevAttrPageableMemoryAccess, "cudaDevAttrPageableMemoryAccess");
  traits.memory_pools =
      has(device, cudaDevAttrMemoryPoolsSupported, "cudaDevAttrMemoryPoolsSupported");
  return traits;
}

}  // namespace linkcheck::trt
