// Finds pieces of work that touch the same bytes without an order between them. It neither runs
// work nor knows allocations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "order.h"

namespace gpusim {

struct Access {
  uintptr_t begin = 0;
  size_t size = 0;
  bool write = false;
};

class AccessLog {
 public:
  struct Entry {
    Access access;
    Point point;
    std::string what;
  };

  // Notes an access by the work at `point`, which comes after everything in `before`. Answers the
  // earlier entry that it races with, if any.
  std::optional<Entry> add(const Access& access, const Point& point, const Clock& before,
                           const std::string& what);

  // The entry touching [begin, begin + size) that `known_complete` does not cover, if any.
  const Entry* find_pending(uintptr_t begin, size_t size, const Clock& known_complete) const;

  // Drops what can race with nothing that comes later.
  void forget(const Clock& known_complete);

 private:
  std::vector<Entry> entries_;
};

}  // namespace gpusim
