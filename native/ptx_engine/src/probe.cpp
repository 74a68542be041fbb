#include "ptx_engine/probe.h"

#include <array>

#include "kernels.h"

namespace ptx_engine {

std::set<int> take_multiprocessors_used() {
  std::set<int> used;
  const Kernels* kernels = Kernels::instance();
  if (kernels == nullptr) return used;
  void* address = reinterpret_cast<void*>(kernels->flags());
  std::array<uint32_t, Kernels::kFlags> flags{};
  if (address == nullptr ||
      cudaMemcpy(flags.data(), address, sizeof(flags), cudaMemcpyDeviceToHost) != cudaSuccess) {
    return used;
  }
  for (size_t i = 0; i < flags.size(); ++i) {
    if (flags[i] != 0) used.insert(static_cast<int>(i));
  }
  cudaMemset(address, 0, sizeof(flags));
  cudaDeviceSynchronize();
  return used;
}

bool spin(cudaStream_t stream, uint64_t nanoseconds) {
  const Kernels* kernels = Kernels::instance();
  return kernels != nullptr && kernels->spin(stream, nanoseconds);
}

}  // namespace ptx_engine
