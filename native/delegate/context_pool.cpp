#include "context_pool.h"

namespace linkcheck::trt {

ContextPool::Lease ContextPool::acquire(cudaStream_t) {
  std::unique_lock<std::mutex> lock(mutex_);
  free_.wait(lock, [this] { return !in_use_; });
  in_use_ = true;
  return {*this, *slot_};
}

void ContextPool::give_back() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    in_use_ = false;
  }
  free_.notify_one();
}

}  // namespace linkcheck::trt
