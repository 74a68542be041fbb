#include "memory_location.h"

#include <array>

namespace linkcheck::trt {

Outcome<MemoryLocation> locate(const void* pointer, const DeviceTraits& traits,
                               const DriverApi& driver) {
  // Of memory that CUDA knows nothing of, the driver says nothing, or zero.
  unsigned int type = 0;
  int is_managed = 0;
  int device = -1;
  std::array<CUpointer_attribute, 3> wanted = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                               CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                               CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  std::array<void*, 3> values = {&type, &is_managed, &device};
  Status status = driver_status(
      driver.get_pointer_attributes(static_cast<unsigned int>(wanted.size()), wanted.data(),
                                    values.data(), reinterpret_cast<CUdeviceptr>(pointer)),
      "cuPointerGetAttributes");
  if (!status.ok()) return std::move(status.failure());
  if (is_managed != 0) return MemoryLocation::kDevice;
  if (type == CU_MEMORYTYPE_DEVICE) {
    if (device == traits.device) return MemoryLocation::kDevice;
    return Failure{Error::InvalidArgument, "memory is on device " + std::to_string(device) +
                                               ", the engine on device " +
                                               std::to_string(traits.device)};
  }
  return traits.reads_host_memory ? MemoryLocation::kShared : MemoryLocation::kHost;
}

}  // namespace linkcheck::trt
