#include "memory_location.h"

#include "cuda_call.h"

namespace linkcheck::trt {

Outcome<MemoryLocation> locate(const void* pointer, const DeviceTraits& traits) {
  cudaPointerAttributes attributes{};
  Status status =
      cuda_status(cudaPointerGetAttributes(&attributes, pointer), "cudaPointerGetAttributes");
  if (!status.ok()) return std::move(status.failure());
  switch (attributes.type) {
    case cudaMemoryTypeManaged:
      return MemoryLocation::kDevice;
    case cudaMemoryTypeDevice:
      if (attributes.device == traits.device) return MemoryLocation::kDevice;
      return Failure{Error::InvalidArgument,
                     "memory is on device " + std::to_string(attributes.device) +
                         ", the engine on device " + std::to_string(traits.device)};
    default:
      return traits.reads_host_memory ? MemoryLocation::kShared : MemoryLocation::kHost;
  }
}

}  // namespace linkcheck::trt
