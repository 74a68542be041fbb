// The one simulated machine of the process: memory, streams, events and checks behind one lock. The
// CUDA and TensorRT entry points are elsewhere and only translate arguments.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "access_log.h"
#include "call_log.h"
#include "fault_log.h"
#include "gpusim/control.h"
#include "green_contexts.h"
#include "kernel_log.h"
#include "memory_map.h"
#include "scheduler.h"

namespace gpusim {

struct Event {
  int device = 0;
  std::optional<Point> recorded;
  Clock clock;
};

struct ObjectCounts {
  size_t runtimes = 0;
  size_t engines = 0;
  size_t contexts = 0;
  int64_t last_weight_budget = -1;
};

class Simulator {
 public:
  // Never destroyed, so that static objects of a program may still call in.
  static Simulator& instance();

  std::mutex& mutex() { return mutex_; }
  void reset(const Settings& settings);

  const Settings& settings() const { return settings_; }
  CallLog& call_log() { return call_log_; }
  KernelLog& kernel_log() { return kernel_log_; }
  FaultLog& faults() { return faults_; }
  GreenContexts& green_contexts() { return green_contexts_; }
  MemoryMap& memory() { return *memory_; }
  Scheduler& scheduler() { return *scheduler_; }
  ObjectCounts& objects() { return objects_; }

  int current_device() const;
  void set_current_device(int device);

  cudaStream_t create_stream(bool blocking);
  // A stream whose kernels run on the green context's multiprocessors only.
  cudaStream_t create_green_stream(uintptr_t green_context);
  bool destroy_stream(cudaStream_t handle);
  // The stream behind a handle; the default streams are those of the current device (and thread).
  // Null and a fault when there is none.
  Stream* resolve(cudaStream_t handle);

  cudaEvent_t create_event();
  bool destroy_event(cudaEvent_t handle);
  // Reports work of its streams that was not waited for.
  bool destroy_green_context(uintptr_t handle);
  uintptr_t new_handle() { return next_handle_ += 16; }
  Event* find_event(cudaEvent_t handle);

  // Enqueues work that touches `accesses`; reports freed, foreign or unordered memory at once.
  Point enqueue(Stream& stream, const std::string& what, const std::vector<Access>& accesses,
                std::function<void()> run);
  void wait(const Point& point);
  void wait(const Event& event);
  void wait_for_stream(Stream& stream);
  void wait_for_device(int device);
  bool known_complete(const Point& point) const;

  // Memory as running work sees it: `size` readable bytes; poison and a fault if they are gone.
  void read(uintptr_t address, void* into, size_t size, const std::string& what);
  void write(uintptr_t address, const void* from, size_t size, const std::string& what);

  cudaError_t free(void* pointer, bool host_memory);
  cudaError_t free_async(void* pointer, Stream& stream);

  Live live() const;

 private:
  Simulator();
  void check_exists(const Access& access, const std::string& what);
  Stream& default_stream(bool per_thread);
  cudaStream_t publish(const Stream& stream);

  std::mutex mutex_;
  Settings settings_;
  uint64_t generation_ = 0;
  CallLog call_log_;
  FaultLog faults_;
  KernelLog kernel_log_;
  GreenContexts green_contexts_;
  ObjectCounts objects_;
  std::unique_ptr<MemoryMap> memory_;
  std::unique_ptr<Scheduler> scheduler_;
  AccessLog accesses_;
  uintptr_t next_handle_ = 0;
  std::map<uintptr_t, StreamId> streams_;
  std::map<uintptr_t, Event> events_;
  std::map<int, StreamId> legacy_;
};

// Sets what cudaGetLastError answers on this thread.
void set_last_error(cudaError_t error);

}  // namespace gpusim
