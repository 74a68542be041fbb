#include "engine_cache.h"

#include <algorithm>

namespace linkcheck::trt {

EngineCache& EngineCache::instance() {
  static auto* cache = new EngineCache();
  return *cache;
}

Outcome<std::shared_ptr<Engine>> EngineCache::load(const void* data, size_t size, int device,
                                                   std::optional<int64_t> budget) {
  const std::shared_ptr<Entry> entry = entry_of({hash_content(data, size), size, device});
  const std::lock_guard<std::mutex> lock(entry->loading);
  for (const auto& known : entry->engines) {
    std::shared_ptr<Engine> engine = known.lock();
    if (engine != nullptr && engine->has_budget(budget)) return engine;
  }
  auto engine = Engine::load(data, size, budget);
  if (engine.ok()) entry->engines.push_back(engine.value());
  return engine;
}

std::shared_ptr<EngineCache::Entry> EngineCache::entry_of(const Key& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto at = entries_.begin(); at != entries_.end();) {
    // Nobody can get hold of an entry that only the map holds while the lock is ours.
    bool unused = at->second.use_count() == 1;
    if (unused) {
      // Waits for nobody, but what the last user wrote is certain to be seen.
      const std::lock_guard<std::mutex> entry_lock(at->second->loading);
      auto& engines = at->second->engines;
      engines.erase(std::remove_if(engines.begin(), engines.end(),
                                   [](const auto& engine) { return engine.expired(); }),
                    engines.end());
      unused = engines.empty();
    }
    at = unused ? entries_.erase(at) : std::next(at);
  }
  std::shared_ptr<Entry>& entry = entries_[key];
  if (entry == nullptr) entry = std::make_shared<Entry>();
  return entry;
}

}  // namespace linkcheck::trt
