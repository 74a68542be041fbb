#include "staging_buffer.h"

#include "cuda_call.h"

namespace linkcheck::trt {

StagingBuffer::~StagingBuffer() {
  if (memory_ != nullptr) cuda_succeeded(cudaFree(memory_), "cudaFree");
}

Status StagingBuffer::reserve(size_t size, cudaStream_t stream, bool memory_pools) {
  if (holds(size)) return {};
  void* fresh = nullptr;
  Status status = memory_pools
                      ? cuda_status(cudaMallocAsync(&fresh, size, stream), "cudaMallocAsync")
                      : cuda_status(cudaMalloc(&fresh, size), "cudaMalloc");
  if (!status.ok()) return status;
  void* former = std::exchange(memory_, fresh);
  size_ = size;
  if (former == nullptr) return {};
  if (memory_pools && cuda_succeeded(cudaFreeAsync(former, stream), "cudaFreeAsync")) return {};
  cuda_succeeded(cudaFree(former), "cudaFree");
  return {};
}

}  // namespace linkcheck::trt
