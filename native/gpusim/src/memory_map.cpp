#include "memory_map.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "gpusim/control.h"

namespace gpusim {
namespace {

constexpr size_t kDeviceSpace = size_t{1} << 38;
constexpr size_t kHostSpace = size_t{1} << 36;
constexpr size_t kPage = 4096;

size_t round_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

MemoryMap::Region MemoryMap::reserve(size_t size) {
  void* address =
      mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) {
    std::fputs("gpusim: no address space to reserve\n", stderr);
    std::abort();
  }
  const auto begin = reinterpret_cast<uintptr_t>(address);
  return {begin, size, begin};
}

MemoryMap::MemoryMap(int devices, size_t bytes_per_device)
    : bytes_per_device_(bytes_per_device),
      device_region_(reserve(kDeviceSpace)),
      host_region_(reserve(kHostSpace)) {
  for (int device = 0; device < devices; ++device) used_[device] = 0;
}

MemoryMap::~MemoryMap() {
  munmap(reinterpret_cast<void*>(device_region_.begin), device_region_.size);
  munmap(reinterpret_cast<void*>(host_region_.begin), host_region_.size);
}

Allocation* MemoryMap::allocate(size_t size, cudaMemoryType type, int device) {
  const bool on_device = type == cudaMemoryTypeDevice;
  Region& region = on_device ? device_region_ : host_region_;
  // A gap of one page after each allocation makes every access past its end land in no allocation.
  const size_t step = round_up(size, kPage) + kPage;
  if (region.next - region.begin > region.size - step) return nullptr;
  if (on_device) {
    size_t& used = used_[device];
    if (size > bytes_per_device_ - used) return nullptr;
    used += size;
  }
  Allocation allocation;
  allocation.begin = region.next;
  allocation.size = size;
  allocation.type = type;
  allocation.device = device;
  if (on_device) {
    allocation.bytes = std::make_unique<unsigned char[]>(size);
    std::memset(allocation.bytes.get(), kFreshByte, size);
  } else {
    void* host = reinterpret_cast<void*>(allocation.begin);
    if (mprotect(host, round_up(size, kPage), PROT_READ | PROT_WRITE) != 0) return nullptr;
    std::memset(host, kFreshByte, size);
  }
  region.next += step;
  const uintptr_t key = allocation.begin;
  return &allocations_.emplace(key, std::move(allocation)).first->second;
}

void MemoryMap::release(Allocation& allocation) {
  allocation.state = AllocationState::kFreed;
  if (allocation.type == cudaMemoryTypeDevice) {
    used_[allocation.device] -= allocation.size;
    allocation.bytes.reset();
  } else {
    void* host = reinterpret_cast<void*>(allocation.begin);
    std::memset(host, kFreedByte, allocation.size);
    mprotect(host, round_up(allocation.size, kPage), PROT_NONE);
  }
}

Allocation* MemoryMap::find(uintptr_t address) {
  auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return nullptr;
  Allocation& candidate = std::prev(after)->second;
  return address < candidate.end() ? &candidate : nullptr;
}

bool MemoryMap::is_simulated(uintptr_t address) const {
  const auto within = [address](const Region& region) {
    return address >= region.begin && address - region.begin < region.size;
  };
  return within(device_region_) || within(host_region_);
}

unsigned char* MemoryMap::translate(uintptr_t address, size_t size) {
  if (!is_simulated(address)) return reinterpret_cast<unsigned char*>(address);
  Allocation* allocation = find(address);
  if (allocation == nullptr || allocation->state == AllocationState::kFreed) return nullptr;
  if (size > allocation->end() - address) return nullptr;
  if (allocation->type != cudaMemoryTypeDevice) return reinterpret_cast<unsigned char*>(address);
  return allocation->bytes.get() + (address - allocation->begin);
}

size_t MemoryMap::live_count(bool on_device) const {
  size_t count = 0;
  for (const auto& [begin, allocation] : allocations_) {
    if (allocation.state == AllocationState::kFreed) continue;
    if ((allocation.type == cudaMemoryTypeDevice) == on_device) ++count;
  }
  return count;
}

size_t MemoryMap::live_bytes() const {
  size_t bytes = 0;
  for (const auto& [device, used] : used_) bytes += used;
  return bytes;
}

}  // namespace gpusim
