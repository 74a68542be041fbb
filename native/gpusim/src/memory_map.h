// The simulated memories: what is allocated, of which kind, on which device. It knows no streams
// and no order.
//
// Device memory has addresses that the host cannot touch (reading one is a segmentation fault, as
// on a real machine) and its bytes lie elsewhere. Addresses are never handed out twice, so a stale
// pointer stays recognisable for ever.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "cuda_runtime_api.h"

namespace gpusim {

enum class AllocationState { kLive, kFreePending, kFreed };

struct Allocation {
  uintptr_t begin = 0;
  size_t size = 0;
  cudaMemoryType type = cudaMemoryTypeDevice;
  int device = 0;
  AllocationState state = AllocationState::kLive;
  std::unique_ptr<unsigned char[]> bytes;  // of device memory only

  uintptr_t end() const { return begin + size; }
};

class MemoryMap {
 public:
  MemoryMap(int devices, size_t bytes_per_device);
  ~MemoryMap();
  MemoryMap(const MemoryMap&) = delete;
  MemoryMap& operator=(const MemoryMap&) = delete;

  // Null when the device is full. `type` decides whether the host can reach the memory.
  Allocation* allocate(size_t size, cudaMemoryType type, int device);
  // Fills the memory with kFreedByte and takes it away.
  void release(Allocation& allocation);

  // The allocation, freed ones too, that holds `address`; null if there never was one.
  Allocation* find(uintptr_t address);
  // True for every address that only this simulator hands out, allocated or not.
  bool is_simulated(uintptr_t address) const;

  // Where the bytes of an address really lie. Null if it is simulated memory that does not exist
  // (any more).
  unsigned char* translate(uintptr_t address, size_t size);

  size_t live_count(bool on_device) const;
  size_t live_bytes() const;

 private:
  struct Region {
    uintptr_t begin = 0;
    size_t size = 0;
    uintptr_t next = 0;
  };
  static Region reserve(size_t size);

  const size_t bytes_per_device_;
  std::map<int, size_t> used_;
  Region device_region_;
  Region host_region_;
  std::map<uintptr_t, Allocation> allocations_;
};

}  // namespace gpusim
