// Hands out execution contexts, one user at a time each. At present one context an engine, so calls
// on one engine take turns; who waits for a turn holds no lock that another stream's work could
// need.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "context_slot.h"

namespace linkcheck::trt {

class ContextPool {
 public:
  // The right to use one slot, given back on destruction.
  class Lease {
   public:
    Lease(ContextPool& pool, ContextSlot& slot) : pool_(&pool), slot_(&slot) {}
    ~Lease() {
      if (pool_ != nullptr) pool_->give_back();
    }
    Lease(Lease&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), slot_(other.slot_) {}
    Lease& operator=(Lease&&) = delete;

    ContextSlot& slot() const { return *slot_; }

   private:
    ContextPool* pool_;
    ContextSlot* slot_;
  };

  explicit ContextPool(std::unique_ptr<ContextSlot> slot) : slot_(std::move(slot)) {}

  // Waits until a context is free for work on `stream`.
  Lease acquire(cudaStream_t stream);

 private:
  void give_back();

  std::mutex mutex_;
  std::condition_variable free_;
  bool in_use_ = false;
  std::unique_ptr<ContextSlot> slot_;
};

}  // namespace linkcheck::trt
