#include "watched_heap.h"

#include <cstdlib>
#include <new>

#include "gpusim/control.h"

namespace {

struct Watch {
  bool active;
  size_t fail_at;
  size_t allocations;
  size_t bytes;
};
thread_local Watch watch;

void* allocate(size_t size) {
  if (watch.active && !gpusim::is_in_call()) {
    ++watch.allocations;
    watch.bytes += size;
    if (watch.allocations == watch.fail_at) throw std::bad_alloc();
  }
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(size_t size) { return allocate(size); }
void* operator new[](size_t size) { return allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

WatchedHeap::WatchedHeap(size_t fail_at) { watch = {true, fail_at, 0, 0}; }
WatchedHeap::~WatchedHeap() { watch.active = false; }
size_t WatchedHeap::allocations() const { return watch.allocations; }
size_t WatchedHeap::bytes() const { return watch.bytes; }
