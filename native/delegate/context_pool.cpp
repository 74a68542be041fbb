#include "context_pool.h"

#include <executorch/runtime/platform/log.h>

#include <algorithm>
#include <string>

namespace linkcheck::trt {

ContextSlot& ContextPool::Lease::slot() const { return *entry_->slot; }

void ContextPool::Lease::keep_for_graph() {
  const std::lock_guard<std::mutex> lock(pool_->mutex_);
  entry_->is_graphs = true;
}

void ContextPool::Lease::release_from_graph() {
  const std::lock_guard<std::mutex> lock(pool_->mutex_);
  entry_->is_graphs = false;
}

ContextPool::ContextPool(std::shared_ptr<Engine> engine, const Signature& signature,
                         const DriverApi& driver, size_t max_contexts, bool waits)
    : engine_(std::move(engine)),
      signature_(signature),
      driver_(driver),
      waits_(waits),
      limit_(max_contexts) {
  entries_.reserve(max_contexts);
}

Status ContextPool::make_first() {
  std::unique_lock<std::mutex> lock(mutex_);
  auto entry = add_entry(lock);
  if (!entry.ok()) return std::move(entry.failure());
  entry.value()->in_use = false;
  return {};
}

Outcome<ContextPool::Lease> ContextPool::acquire(const StreamKey& key) {
  std::unique_lock<std::mutex> lock(mutex_);
  Entry* entry = find_idle(key);
  while (entry == nullptr) {
    if (count() < limit_) {
      auto added = add_entry(lock);
      if (!added.ok()) return std::move(added.failure());
      entry = added.value();
    } else if ((entry = find_least_recently_used()) == nullptr) {
      if (!waits_) {
        return Failure{Error::OutOfResources, "all " + std::to_string(limit_) +
                                                  " execution contexts are in use, and "
                                                  "on_exhausted is \"error\" (max_contexts raises "
                                                  "their number)"};
      }
      free_.wait(lock);
      entry = find_idle(key);
    }
  }
  entry->in_use = true;
  entry->last_stream = key;
  entry->last_use = ++uses_;
  return Lease(*this, *entry);
}

ContextPool::Entry* ContextPool::find_idle(const StreamKey& key) {
  Entry* unused = nullptr;
  for (const auto& entry : entries_) {
    if (entry->in_use || entry->is_graphs) continue;
    if (entry->last_use > 0 && entry->last_stream == key) return entry.get();
    if (entry->last_use == 0) unused = entry.get();
  }
  return unused;
}

ContextPool::Entry* ContextPool::find_least_recently_used() {
  Entry* oldest = nullptr;
  for (const auto& entry : entries_) {
    if (entry->in_use || entry->is_graphs) continue;
    if (oldest != nullptr && oldest->last_use < entry->last_use) continue;
    oldest = entry.get();
  }
  return oldest;
}

Outcome<ContextPool::Entry*> ContextPool::add_entry(std::unique_lock<std::mutex>& lock) {
  // Its place is taken before the lock is let go, so that others do not make too many.
  Entry* entry = entries_.emplace_back(std::make_unique<Entry>()).get();
  const auto take_out = [this, entry] {
    entries_.erase(std::find_if(entries_.begin(), entries_.end(),
                                [entry](const auto& other) { return other.get() == entry; }));
    // Whoever waited for this place must look again.
    free_.notify_all();
  };
  lock.unlock();
  Outcome<std::unique_ptr<ContextSlot>> slot = Failure{Error::Internal, ""};
  try {
    slot = ContextSlot::create(*engine_, signature_, driver_);
  } catch (...) {
    lock.lock();
    take_out();
    throw;
  }
  lock.lock();
  if (slot.ok()) {
    entry->slot = std::move(slot.value());
    return entry;
  }
  take_out();
  if (count() == 0) return std::move(slot.failure());
  // The GPU has no room for more: those that are there serve everybody.
  limit_ = std::min(limit_, count());
  ET_LOG(Info, "TensorRTBackend: no more than %zu execution contexts: %s", limit_,
         slot.failure().message.c_str());
  return nullptr;
}

void ContextPool::give_back(Entry& entry) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    entry.in_use = false;
  }
  free_.notify_one();
}

size_t ContextPool::count() const {
  return static_cast<size_t>(std::count_if(entries_.begin(), entries_.end(),
                                           [](const auto& entry) { return !entry->is_graphs; }));
}

}  // namespace linkcheck::trt
