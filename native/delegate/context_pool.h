// Hands out the execution contexts of one loaded engine, one user at a time each. A stream gets the
// context that it had last, while there is one: so streams do not wait for each other's work until
// there are more of them than contexts.
//
// Thread: any. The engine's GPU must be current. Whoever waits here waits for another call to
// return, and holds no lock meanwhile; work on the GPU is waited for by the user of a context
// (ContextSlot::settle).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "context_slot.h"

namespace linkcheck::trt {

// A stream as a caller means it: one handle stands for every thread's own default stream.
struct StreamKey {
  explicit StreamKey(cudaStream_t handle)
      : stream(handle),
        thread(handle == cudaStreamPerThread ? std::this_thread::get_id() : std::thread::id()) {}

  cudaStream_t stream;
  std::thread::id thread;

  friend bool operator==(const StreamKey& a, const StreamKey& b) {
    return a.stream == b.stream && a.thread == b.thread;
  }
};

class ContextPool {
  struct Entry;

 public:
  // The right to use one slot, given back on destruction.
  class Lease {
   public:
    Lease(ContextPool& pool, Entry& entry) : pool_(&pool), entry_(&entry) {}
    ~Lease() {
      if (pool_ != nullptr) pool_->give_back(*entry_);
    }
    Lease(Lease&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), entry_(other.entry_) {}
    Lease& operator=(Lease&&) = delete;

    ContextSlot& slot() const;
    // A graph uses the context from now on, whenever it is launched: nobody else gets it.
    void keep_for_graph();
    // It does not after all: nothing was captured.
    void release_from_graph();

   private:
    ContextPool* pool_;
    Entry* entry_;
  };

  // At most `max_contexts` are handed out in turn (those of graphs not counted); when all are in
  // use acquire() waits, or fails if not `waits`.
  ContextPool(std::shared_ptr<Engine> engine, const Signature& signature, const DriverApi& driver,
              size_t max_contexts, bool waits);

  // Makes the first context, so that what cannot run fails when it is loaded.
  Status make_first();

  // A context for work on `key`'s stream. In this order: the one that the stream had, an unused or
  // a new one, the one whose last use is the longest ago. Fails with OutOfResources, or as the
  // first context would.
  Outcome<Lease> acquire(const StreamKey& key);

 private:
  struct Entry {
    std::unique_ptr<ContextSlot> slot;
    StreamKey last_stream{nullptr};
    uint64_t last_use = 0;  // 0: never
    bool in_use = true;
    bool is_graphs = false;  // a graph's for good; not counted
  };

  Entry* find_idle(const StreamKey& key);
  Entry* find_least_recently_used();
  // Called with the lock held, which it lets go while it makes the context. Null when that failed
  // but others can be waited for.
  Outcome<Entry*> add_entry(std::unique_lock<std::mutex>& lock);
  void give_back(Entry& entry);
  size_t count() const;

  const std::shared_ptr<Engine> engine_;
  const Signature& signature_;
  const DriverApi driver_;
  const bool waits_;

  std::mutex mutex_;
  std::condition_variable free_;
  size_t limit_;
  uint64_t uses_ = 0;
  std::vector<std::unique_ptr<Entry>> entries_;
};

}  // namespace linkcheck::trt
