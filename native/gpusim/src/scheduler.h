// Streams as queues of work that run only when something waits, in an order the seed chooses. It
// does not know what the work does and checks no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "access_log.h"
#include "order.h"

namespace gpusim {

struct Operation {
  uint64_t seq = 0;
  std::vector<Point> after;
  std::function<void()> run;
};

// Work of a graph: what it takes to enqueue it again.
struct CapturedWork {
  std::string what;
  std::vector<Access> accesses;
  std::function<void()> run;
};

struct Capture {
  std::thread::id thread;
  bool is_relaxed = false;
  bool is_broken = false;
  std::vector<CapturedWork> work;
};

// Multiprocessors first to first + count - 1 of a device.
struct SmRange {
  int first = 0;
  int count = 0;
};

struct Stream {
  StreamId id = 0;
  int device = 0;
  bool blocking = true;  // ordered with the legacy stream of its device
  bool legacy = false;
  SmRange sms;
  uintptr_t green_context = 0;  // handle of the one it belongs to; 0: the primary context
  std::optional<Capture> capture;
  uint64_t enqueued = 0;
  uint64_t completed = 0;
  std::deque<Operation> queue;
  Clock clock;  // what the last enqueued work comes after, itself included

  Point last() const { return {id, enqueued}; }
};

class Scheduler {
 public:
  explicit Scheduler(uint64_t seed) : random_(seed) {}

  Stream& create(int device, bool blocking, bool legacy);
  Stream* find(StreamId id);

  // The clock that work enqueued now would come after (without its own point).
  Clock clock_before(const Stream& stream) const;
  // Appends work; it runs after `after`, after the stream's earlier work, and after what legacy
  // ordering asks for.
  Point enqueue(Stream& stream, std::vector<Point> after, std::function<void()> run);
  // Makes later work of `stream` come after `clock` in the eyes of the checks (the waiting itself
  // is enqueued).
  void order_after(Stream& stream, const Clock& clock) { stream.clock.include(clock); }

  bool is_complete(const Point& point) const;
  void run_until(const Point& point);
  void run_some();  // what happens to be done by the time somebody asks
  void run_all();

  // The host waited: everything in `clock` is over, and everybody may rely on it.
  void host_waited(const Clock& clock) { host_clock_.include(clock); }
  const Clock& host_clock() const { return host_clock_; }
  std::vector<StreamId> streams_of(int device) const;
  size_t pending() const;

 private:
  bool runnable(const Stream& stream) const;
  bool run_one();
  std::vector<Point> legacy_order(const Stream& stream) const;

  std::map<StreamId, Stream> streams_;
  StreamId next_id_ = 1;
  Clock host_clock_;
  std::mt19937_64 random_;
};

}  // namespace gpusim
