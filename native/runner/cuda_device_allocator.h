// CUDA memory for programs whose planned buffers are on the GPU. Registered by the runner, once,
// and only when nobody else did: ExecuTorch aborts on a second allocator.
#pragma once

#include <executorch/runtime/core/device_allocator.h>

namespace linkcheck::runner {

class CudaDeviceAllocator final : public executorch::runtime::DeviceAllocator {
 public:
  static void register_if_absent();

  executorch::runtime::Result<void*> allocate(size_t nbytes,
                                              executorch::runtime::etensor::DeviceIndex index,
                                              size_t alignment) override;
  void deallocate(void* ptr, executorch::runtime::etensor::DeviceIndex index) override;
  executorch::runtime::Error copy_host_to_device(
      void* dst, const void* src, size_t nbytes,
      executorch::runtime::etensor::DeviceIndex index) override;
  executorch::runtime::Error copy_device_to_host(
      void* dst, const void* src, size_t nbytes,
      executorch::runtime::etensor::DeviceIndex index) override;
  executorch::runtime::etensor::DeviceType device_type() const override;
};

}  // namespace linkcheck::runner
