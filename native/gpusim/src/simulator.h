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

// The simulator's lock. Whoever holds it is in a call of CUDA or TensorRT, and what is allocated
// there is none of the caller's doing.
class CallMutex {
 public:
  void lock();
  void unlock();
  static bool held_by_this_thread();

 private:
  std::mutex mutex_;
};
using Lock = std::lock_guard<CallMutex>;

struct Event {
  int device = 0;
  uintptr_t green_context = 0;  // of the context that it was made in; 0: the primary one
  bool captured = false;        // recorded into a graph: it cannot be waited for
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

  CallMutex& mutex() { return mutex_; }
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
  // Makes the device's primary context current.
  void set_current_device(int device);
  // The green context that is current on this thread; 0: the device's primary one.
  uintptr_t current_green_context() const;
  // Makes a green context current; false if it does not exist.
  bool set_current_green_context(uintptr_t handle);

  // Graphs: work on a capturing stream is kept and runs with each launch.
  bool begin_capture(Stream& stream, cudaStreamCaptureMode mode);
  cudaError_t end_capture(Stream& stream, cudaGraph_t* graph);
  cudaGraphExec_t instantiate(cudaGraph_t graph);
  bool launch(cudaGraphExec_t exec, Stream& stream);
  bool destroy_graph(uintptr_t handle);
  // True when a call that captures forbid may go on; otherwise it has broken this thread's
  // captures.
  bool allows_unsafe_call();

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
  cudaError_t record(cudaEvent_t handle, cudaStream_t stream);
  cudaError_t query(cudaEvent_t handle);

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

  CallMutex mutex_;
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
  std::map<uintptr_t, std::vector<CapturedWork>> graphs_;
  std::map<uintptr_t, StreamId> streams_;
  std::map<uintptr_t, Event> events_;
  std::map<int, StreamId> legacy_;
};

// Sets how strictly this thread's captures are guarded, and answers what it was.
cudaStreamCaptureMode exchange_capture_mode(cudaStreamCaptureMode mode);

// Sets what cudaGetLastError answers on this thread.
void set_last_error(cudaError_t error);

}  // namespace gpusim
