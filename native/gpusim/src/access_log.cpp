#include "access_log.h"

#include <algorithm>

namespace gpusim {
namespace {

bool overlap(const Access& a, uintptr_t begin, size_t size) {
  return a.begin < begin + size && begin < a.begin + a.size;
}

bool contains(const Access& outer, const Access& inner) {
  return outer.begin <= inner.begin && inner.begin + inner.size <= outer.begin + outer.size;
}

}  // namespace

std::optional<AccessLog::Entry> AccessLog::add(const Access& access, const Point& point,
                                               const Clock& before, const std::string& what) {
  if (access.size == 0) return std::nullopt;
  std::optional<Entry> race;
  for (const Entry& entry : entries_) {
    const bool conflict = entry.access.write || access.write;
    const bool itself = entry.point.stream == point.stream && entry.point.seq == point.seq;
    if (conflict && !itself && overlap(entry.access, access.begin, access.size) &&
        !before.covers(entry.point)) {
      race = entry;
    }
  }
  // Later work of the same stream is ordered after both, so whatever races with the older entry is
  // reported for the newer one: the list stays short even when a program never waits.
  entries_.erase(std::remove_if(entries_.begin(), entries_.end(),
                                [&](const Entry& entry) {
                                  return entry.point.stream == point.stream &&
                                         contains(access, entry.access) &&
                                         (access.write || !entry.access.write);
                                }),
                 entries_.end());
  entries_.push_back({access, point, what});
  return race;
}

const AccessLog::Entry* AccessLog::find_pending(uintptr_t begin, size_t size,
                                                const Clock& known_complete) const {
  for (const Entry& entry : entries_) {
    if (overlap(entry.access, begin, size) && !known_complete.covers(entry.point)) return &entry;
  }
  return nullptr;
}

void AccessLog::forget(const Clock& known_complete) {
  entries_.erase(
      std::remove_if(entries_.begin(), entries_.end(),
                     [&](const Entry& entry) { return known_complete.covers(entry.point); }),
      entries_.end());
}

}  // namespace gpusim
