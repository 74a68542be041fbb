// Device memory that stands in for one host tensor, kept from call to call and grown when a call
// needs more.
//
// Ownership: the memory. Whoever uses it has waited for the work that touches it before the next
// call to reserve() and before destruction, which frees at once.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <utility>

#include "failure.h"

namespace linkcheck::trt {

class StagingBuffer {
 public:
  StagingBuffer() = default;
  ~StagingBuffer();
  StagingBuffer(StagingBuffer&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  StagingBuffer& operator=(StagingBuffer&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
    return *this;
  }

  // Makes room for `size` bytes, for work on `stream`; the contents are lost. With memory pools the
  // growth is ordered by the stream; without, it stops the device once.
  Status reserve(size_t size, cudaStream_t stream, bool memory_pools);
  bool holds(size_t size) const { return memory_ != nullptr && size <= size_; }
  void* data() const { return memory_; }

 private:
  void* memory_ = nullptr;
  size_t size_ = 0;
};

}  // namespace linkcheck::trt
