// Parts of a GPU's multiprocessors, and the green contexts that hold them. It knows no streams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "scheduler.h"

namespace gpusim {

struct GreenContext {
  int device = 0;
  SmRange sms;
};

class GreenContexts {
 public:
  // The first `wanted` of `all`, rounded up to `granularity` or to all; nothing when there are not
  // so many. So does an H200's driver: of its 132 multiprocessors, 9 are given as 16, 131 as 132.
  static std::optional<SmRange> split(const SmRange& all, int wanted, int granularity);

  void add_description(uintptr_t handle, const GreenContext& part) { descriptions_[handle] = part; }
  const GreenContext* find_description(uintptr_t handle) const;
  void create(uintptr_t handle, const GreenContext& context) { contexts_[handle] = context; }
  const GreenContext* find(uintptr_t handle) const;
  void destroy(uintptr_t handle) { contexts_.erase(handle); }
  size_t count() const { return contexts_.size(); }

 private:
  std::map<uintptr_t, GreenContext> descriptions_;
  std::map<uintptr_t, GreenContext> contexts_;
};

}  // namespace gpusim
