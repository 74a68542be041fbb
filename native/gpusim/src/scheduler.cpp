#include "scheduler.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace gpusim {

Stream& Scheduler::create(int device, bool blocking, bool legacy) {
  Stream stream;
  stream.id = next_id_++;
  stream.device = device;
  stream.blocking = blocking;
  stream.legacy = legacy;
  const StreamId id = stream.id;
  return streams_.emplace(id, std::move(stream)).first->second;
}

Stream* Scheduler::find(StreamId id) {
  const auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : &found->second;
}

std::vector<Point> Scheduler::legacy_order(const Stream& stream) const {
  std::vector<Point> points;
  if (!stream.blocking && !stream.legacy) return points;
  for (const auto& [id, other] : streams_) {
    if (id == stream.id || other.device != stream.device || other.enqueued == 0) continue;
    if (stream.legacy ? other.blocking : other.legacy) points.push_back(other.last());
  }
  return points;
}

Clock Scheduler::clock_before(const Stream& stream) const {
  Clock clock = stream.clock;
  clock.include(host_clock_);
  for (const Point& point : legacy_order(stream)) clock.include(streams_.at(point.stream).clock);
  return clock;
}

Point Scheduler::enqueue(Stream& stream, std::vector<Point> after, std::function<void()> run) {
  Clock clock = clock_before(stream);
  for (const Point& point : legacy_order(stream)) after.push_back(point);
  const uint64_t seq = ++stream.enqueued;
  stream.queue.push_back({seq, std::move(after), std::move(run)});
  clock.include(Point{stream.id, seq});
  stream.clock = std::move(clock);
  return {stream.id, seq};
}

bool Scheduler::is_complete(const Point& point) const {
  return streams_.at(point.stream).completed >= point.seq;
}

bool Scheduler::runnable(const Stream& stream) const {
  if (stream.queue.empty()) return false;
  for (const Point& point : stream.queue.front().after) {
    if (!is_complete(point)) return false;
  }
  return true;
}

bool Scheduler::run_one() {
  std::vector<Stream*> ready;
  for (auto& [id, stream] : streams_) {
    if (runnable(stream)) ready.push_back(&stream);
  }
  if (ready.empty()) return false;
  Stream& stream = *ready[random_() % ready.size()];
  Operation operation = std::move(stream.queue.front());
  stream.queue.pop_front();
  operation.run();
  stream.completed = operation.seq;
  return true;
}

void Scheduler::run_until(const Point& point) {
  while (!is_complete(point)) {
    if (!run_one()) {
      std::fputs("gpusim: work waits for work that was never enqueued\n", stderr);
      std::abort();
    }
  }
}

void Scheduler::run_some() {
  for (uint64_t steps = random_() % 3; steps > 0 && run_one(); --steps) {
  }
}

void Scheduler::run_all() {
  while (run_one()) {
  }
}

std::vector<StreamId> Scheduler::streams_of(int device) const {
  std::vector<StreamId> ids;
  for (const auto& [id, stream] : streams_) {
    if (stream.device == device) ids.push_back(id);
  }
  return ids;
}

size_t Scheduler::pending() const {
  size_t count = 0;
  for (const auto& [id, stream] : streams_) count += stream.queue.size();
  return count;
}

}  // namespace gpusim
