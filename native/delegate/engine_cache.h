// The engines of the process: who loads the same bytes for the same GPU gets the engine that is
// there. It owns none of them: an engine goes with its last user.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "content_hash.h"
#include "engine.h"
#include "failure.h"

namespace linkcheck::trt {

// Thread: any.
class EngineCache {
 public:
  // Never destroyed: programs may be loaded and unloaded after static destructors ran.
  static EngineCache& instance();

  // As Engine::load(), for `device`, which must be the current one. An engine whose
  // weight-streaming budget is another is another engine: a budget cannot change once a context
  // exists.
  Outcome<std::shared_ptr<Engine>> load(const void* data, size_t size, int device,
                                        std::optional<int64_t> budget);

 private:
  using Key = std::tuple<ContentHash, size_t, int>;
  struct Entry {
    std::mutex loading;  // who comes second waits for the first, and loads nothing
    std::vector<std::weak_ptr<Engine>> engines;
  };

  // The key's entry, made if need be; entries without engines and users are dropped.
  std::shared_ptr<Entry> entry_of(const Key& key);

  std::mutex mutex_;
  std::map<Key, std::shared_ptr<Entry>> entries_;
};

}  // namespace linkcheck::trt
