// A process in which somebody else registered an allocator for CUDA, as ExecuTorch's own CUDA
// backend does: the runner's stays away. That it is there otherwise, runner_test.py shows.
#include <executorch/runtime/platform/runtime.h>
#include <gtest/gtest.h>

#include "cuda_device_allocator.h"

namespace et = executorch::runtime;
using executorch::runtime::etensor::DeviceIndex;
using executorch::runtime::etensor::DeviceType;

namespace {

class Stranger final : public et::DeviceAllocator {
 public:
  et::Result<void*> allocate(size_t, DeviceIndex, size_t) override {
    return et::Error::NotImplemented;
  }
  void deallocate(void*, DeviceIndex) override {}
  et::Error copy_host_to_device(void*, const void*, size_t, DeviceIndex) override {
    return et::Error::NotImplemented;
  }
  et::Error copy_device_to_host(void*, const void*, size_t, DeviceIndex) override {
    return et::Error::NotImplemented;
  }
  DeviceType device_type() const override { return DeviceType::CUDA; }
};

}  // namespace

TEST(RunnerAllocator, StaysAwayWhereOneIs) {
  et::runtime_init();
  ASSERT_EQ(et::get_device_allocator(DeviceType::CUDA), nullptr) << "nobody registers one unasked";
  static Stranger stranger;
  et::register_device_allocator(&stranger);
  linkcheck::runner::CudaDeviceAllocator::register_if_absent();
  EXPECT_EQ(et::get_device_allocator(DeviceType::CUDA), &stranger);
}
