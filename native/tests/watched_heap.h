// The program's operator new, which counts and can be made to fail. For programs of their own,
// because it is replaced for the whole process.
#pragma once

#include <cstddef>

// What this thread allocates while it exists, other than inside a simulated call: that stands for
// the GPU's own doing. One at a time.
class WatchedHeap {
 public:
  // The `fail_at`th allocation (from 1) throws std::bad_alloc; 0: none.
  explicit WatchedHeap(size_t fail_at = 0);
  ~WatchedHeap();
  WatchedHeap(const WatchedHeap&) = delete;
  WatchedHeap& operator=(const WatchedHeap&) = delete;

  size_t allocations() const;
  size_t bytes() const;
};
