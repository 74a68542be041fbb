// Which work is known to come before which: points on streams and vector clocks over them. It
// executes nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

namespace gpusim {

using StreamId = uint32_t;

// The seq-th piece of work of one stream, counted from 1.
struct Point {
  StreamId stream = 0;
  uint64_t seq = 0;
};

// Everything that is known to happen before some moment: per stream, the last piece of work.
class Clock {
 public:
  void include(const Point& point) {
    uint64_t& seq = last_[point.stream];
    seq = std::max(seq, point.seq);
  }
  void include(const Clock& other) {
    for (const auto& [stream, seq] : other.last_) include(Point{stream, seq});
  }
  bool covers(const Point& point) const {
    const auto found = last_.find(point.stream);
    return found != last_.end() && found->second >= point.seq;
  }

 private:
  std::map<StreamId, uint64_t> last_;
};

}  // namespace gpusim
