#include "simulator.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <utility>

namespace gpusim {
namespace {

// What one host thread has: its current device and its own default streams. A reset makes it stale.
struct ThreadState {
  uint64_t generation = 0;
  int device = 0;
  std::map<int, StreamId> per_thread;
  uintptr_t green_context = 0;
};
thread_local ThreadState thread_state;
thread_local cudaStreamCaptureMode thread_capture_mode = cudaStreamCaptureModeGlobal;
thread_local int calls_of_this_thread = 0;

// Handles are no addresses: following one would crash, as it should.
constexpr uintptr_t kHandleBase = uintptr_t{0x6B5} << 44;

// What GPUSIM_SETTINGS says; a key that does not exist is a mistake in a test, and ends it.
Settings settings_from_environment() {
  Settings settings;
  const char* text = std::getenv("GPUSIM_SETTINGS");
  std::istringstream list(text == nullptr ? "" : text);
  for (std::string entry; std::getline(list, entry, ',');) {
    const size_t equals = entry.find('=');
    const std::string key = entry.substr(0, equals);
    const int value = equals == std::string::npos ? 0 : std::atoi(entry.c_str() + equals + 1);
    if (key == "devices") {
      settings.devices = value;
    } else if (key == "sms") {
      settings.sms = value;
    } else if (key == "sm_granularity") {
      settings.sm_granularity = value;
    } else if (key == "green_contexts") {
      settings.green_contexts = value != 0;
    } else {
      std::fprintf(stderr, "gpusim: GPUSIM_SETTINGS has no %s\n", key.c_str());
      std::abort();
    }
  }
  return settings;
}

bool is_legacy(cudaStream_t handle) { return handle == nullptr || handle == cudaStreamLegacy; }

}  // namespace

void CallMutex::lock() {
  ++calls_of_this_thread;
  mutex_.lock();
}

void CallMutex::unlock() {
  mutex_.unlock();
  --calls_of_this_thread;
}

bool CallMutex::held_by_this_thread() { return calls_of_this_thread > 0; }

cudaStreamCaptureMode exchange_capture_mode(cudaStreamCaptureMode mode) {
  return std::exchange(thread_capture_mode, mode);
}

Simulator& Simulator::instance() {
  static Simulator* simulator = new Simulator();
  return *simulator;
}

Simulator::Simulator() { reset(settings_from_environment()); }

void Simulator::reset(const Settings& settings) {
  settings_ = settings;
  ++generation_;
  call_log_ = CallLog{};
  faults_ = FaultLog{};
  kernel_log_.clear();
  green_contexts_ = GreenContexts{};
  objects_ = ObjectCounts{};
  accesses_ = AccessLog{};
  scheduler_ = std::make_unique<Scheduler>(settings.seed);
  memory_ = std::make_unique<MemoryMap>(settings.devices, settings.memory_bytes);
  next_handle_ = kHandleBase + generation_ * (uintptr_t{1} << 30);
  streams_.clear();
  events_.clear();
  legacy_.clear();
  graphs_.clear();
}

int Simulator::current_device() const {
  return thread_state.generation == generation_ ? thread_state.device : 0;
}

void Simulator::set_current_device(int device) {
  if (thread_state.generation != generation_) thread_state = ThreadState{generation_, 0, {}, 0};
  thread_state.device = device;
  thread_state.green_context = 0;
}

uintptr_t Simulator::current_green_context() const {
  return thread_state.generation == generation_ ? thread_state.green_context : 0;
}

bool Simulator::set_current_green_context(uintptr_t handle) {
  const GreenContext* context = green_contexts_.find(handle);
  if (context == nullptr) return false;
  set_current_device(context->device);
  thread_state.green_context = handle;
  return true;
}

bool Simulator::begin_capture(Stream& stream, cudaStreamCaptureMode mode) {
  if (stream.legacy || stream.capture) return false;
  stream.capture.emplace();
  stream.capture->thread = std::this_thread::get_id();
  stream.capture->is_relaxed = mode == cudaStreamCaptureModeRelaxed;
  return true;
}

cudaError_t Simulator::end_capture(Stream& stream, cudaGraph_t* graph) {
  if (!stream.capture) return cudaErrorIllegalState;
  const Capture capture = std::move(*stream.capture);
  stream.capture.reset();
  *graph = nullptr;
  if (capture.is_broken) return cudaErrorStreamCaptureInvalidated;
  const uintptr_t handle = new_handle();
  graphs_[handle] = capture.work;
  *graph = reinterpret_cast<cudaGraph_t>(handle);
  return cudaSuccess;
}

cudaGraphExec_t Simulator::instantiate(cudaGraph_t graph) {
  const auto found = graphs_.find(reinterpret_cast<uintptr_t>(graph));
  if (found == graphs_.end()) return nullptr;
  const uintptr_t handle = new_handle();
  graphs_[handle] = found->second;
  return reinterpret_cast<cudaGraphExec_t>(handle);
}

bool Simulator::launch(cudaGraphExec_t exec, Stream& stream) {
  const auto found = graphs_.find(reinterpret_cast<uintptr_t>(exec));
  if (found == graphs_.end()) return false;
  for (const CapturedWork& work : found->second) {
    enqueue(stream, work.what, work.accesses, work.run);
  }
  return true;
}

bool Simulator::destroy_graph(uintptr_t handle) { return graphs_.erase(handle) == 1; }

bool Simulator::allows_unsafe_call() {
  if (thread_capture_mode == cudaStreamCaptureModeRelaxed) return true;
  bool allowed = true;
  for (const auto& [handle, id] : streams_) {
    Stream& stream = *scheduler_->find(id);
    if (!stream.capture || stream.capture->is_relaxed) continue;
    if (stream.capture->thread != std::this_thread::get_id()) continue;
    stream.capture->is_broken = true;
    allowed = false;
  }
  return allowed;
}

cudaStream_t Simulator::create_stream(bool blocking) {
  Stream& stream = scheduler_->create(current_device(), blocking, false);
  stream.sms = {0, settings_.sms};
  return publish(stream);
}

cudaStream_t Simulator::create_green_stream(uintptr_t green_context) {
  const GreenContext* context = green_contexts_.find(green_context);
  if (context == nullptr) return nullptr;
  Stream& stream = scheduler_->create(context->device, false, false);
  stream.sms = context->sms;
  stream.green_context = green_context;
  return publish(stream);
}

cudaStream_t Simulator::publish(const Stream& stream) {
  const uintptr_t handle = new_handle();
  streams_[handle] = stream.id;
  return reinterpret_cast<cudaStream_t>(handle);
}

bool Simulator::destroy_stream(cudaStream_t handle) {
  // Work already enqueued still runs, as CUDA promises; only the handle is gone.
  return streams_.erase(reinterpret_cast<uintptr_t>(handle)) == 1;
}

Stream& Simulator::default_stream(bool per_thread) {
  if (thread_state.generation != generation_) set_current_device(0);
  std::map<int, StreamId>& known = per_thread ? thread_state.per_thread : legacy_;
  const int device = current_device();
  const auto found = known.find(device);
  if (found != known.end()) return *scheduler_->find(found->second);
  Stream& stream = scheduler_->create(device, per_thread, !per_thread);
  stream.sms = {0, settings_.sms};
  known[device] = stream.id;
  return stream;
}

Stream* Simulator::resolve(cudaStream_t handle) {
  if (is_legacy(handle)) return &default_stream(false);
  if (handle == cudaStreamPerThread) {
    return current_green_context() == 0 ? &default_stream(true) : nullptr;
  }
  const auto found = streams_.find(reinterpret_cast<uintptr_t>(handle));
  if (found == streams_.end()) {
    faults_.add(FaultKind::kInvalidHandle, "a stream that does not exist is used");
    return nullptr;
  }
  Stream* stream = scheduler_->find(found->second);
  if (stream->green_context == 0 || green_contexts_.find(stream->green_context) != nullptr) {
    return stream;
  }
  faults_.add(FaultKind::kInvalidHandle, "a stream is used whose green context is gone");
  return nullptr;
}

cudaEvent_t Simulator::create_event() {
  Event event;
  event.device = current_device();
  event.green_context = current_green_context();
  const uintptr_t handle = new_handle();
  events_[handle] = event;
  return reinterpret_cast<cudaEvent_t>(handle);
}

bool Simulator::destroy_event(cudaEvent_t handle) {
  return events_.erase(reinterpret_cast<uintptr_t>(handle)) == 1;
}

bool Simulator::destroy_green_context(uintptr_t handle) {
  const GreenContext* context = green_contexts_.find(handle);
  if (context == nullptr) return false;
  for (const StreamId id : scheduler_->streams_of(context->device)) {
    const Stream& stream = *scheduler_->find(id);
    if (stream.green_context != handle || stream.enqueued == 0) continue;
    if (known_complete(stream.last())) continue;
    faults_.add(FaultKind::kFreeInUse,
                "a green context is destroyed while its work was not waited for");
  }
  green_contexts_.destroy(handle);
  return true;
}

Event* Simulator::find_event(cudaEvent_t handle) {
  const auto found = events_.find(reinterpret_cast<uintptr_t>(handle));
  if (found != events_.end()) return &found->second;
  faults_.add(FaultKind::kInvalidHandle, "an event that does not exist is used");
  return nullptr;
}

cudaError_t Simulator::record(cudaEvent_t handle, cudaStream_t stream_handle) {
  Stream* stream = resolve(stream_handle);
  Event* event = find_event(handle);
  if (stream == nullptr || event == nullptr) return cudaErrorInvalidResourceHandle;
  if (event->device != stream->device || event->green_context != stream->green_context) {
    faults_.add(FaultKind::kWrongDevice,
                event->device != stream->device
                    ? "an event is recorded on a stream of another device"
                    : "an event is recorded on a stream of another context");
    return cudaErrorInvalidResourceHandle;
  }
  event->captured = stream->capture.has_value();
  if (event->captured) return cudaSuccess;
  event->recorded = scheduler_->enqueue(*stream, {}, [] {});
  event->clock = stream->clock;
  return cudaSuccess;
}

cudaError_t Simulator::query(cudaEvent_t handle) {
  const Event* event = find_event(handle);
  if (event == nullptr) return cudaErrorInvalidResourceHandle;
  if (event->captured) return cudaErrorCapturedEvent;
  if (!allows_unsafe_call()) return cudaErrorStreamCaptureUnsupported;
  if (!event->recorded) return cudaSuccess;
  scheduler_->run_some();
  if (!scheduler_->is_complete(*event->recorded)) return cudaErrorNotReady;
  wait(*event);
  return cudaSuccess;
}

void Simulator::check_exists(const Access& access, const std::string& what) {
  if (access.size == 0 || !memory_->is_simulated(access.begin)) return;
  const Allocation* allocation = memory_->find(access.begin);
  if (allocation == nullptr || access.size > allocation->end() - access.begin) {
    faults_.add(FaultKind::kOutOfBounds, what + " touches memory outside every allocation");
  } else if (allocation->state != AllocationState::kLive) {
    faults_.add(FaultKind::kUseAfterFree, what + " touches memory that was freed");
  }
}

Point Simulator::enqueue(Stream& stream, const std::string& what,
                         const std::vector<Access>& accesses, std::function<void()> run) {
  if (stream.capture) {
    stream.capture->work.push_back({what, accesses, std::move(run)});
    return {stream.id, 0};
  }
  accesses_.forget(scheduler_->host_clock());
  const Clock before = scheduler_->clock_before(stream);
  const Point point = scheduler_->enqueue(stream, {}, std::move(run));
  for (const Access& access : accesses) {
    check_exists(access, what);
    if (const auto race = accesses_.add(access, point, before, what)) {
      faults_.add(FaultKind::kUnorderedAccess,
                  what + " and an earlier " + race->what +
                      " touch the same memory, and nothing orders them");
    }
  }
  return point;
}

void Simulator::wait(const Point& point) {
  scheduler_->run_until(point);
  Clock clock;
  clock.include(point);
  scheduler_->host_waited(clock);
}

void Simulator::wait(const Event& event) {
  if (!event.recorded) return;
  const Point point = *event.recorded;
  const Clock clock = event.clock;
  scheduler_->run_until(point);
  scheduler_->host_waited(clock);
}

void Simulator::wait_for_stream(Stream& stream) {
  const Clock clock = stream.clock;
  scheduler_->run_until(stream.last());
  scheduler_->host_waited(clock);
}

void Simulator::wait_for_device(int device) {
  for (const StreamId id : scheduler_->streams_of(device)) {
    wait_for_stream(*scheduler_->find(id));
  }
}

bool Simulator::known_complete(const Point& point) const {
  return scheduler_->host_clock().covers(point);
}

void Simulator::read(uintptr_t address, void* into, size_t size, const std::string& what) {
  if (size == 0) return;
  const unsigned char* bytes = memory_->translate(address, size);
  if (bytes != nullptr) {
    std::memcpy(into, bytes, size);
    return;
  }
  faults_.add(FaultKind::kUseAfterFree, what + " reads memory that is gone by now");
  std::memset(into, kFreedByte, size);
}

void Simulator::write(uintptr_t address, const void* from, size_t size, const std::string& what) {
  if (size == 0) return;
  unsigned char* bytes = memory_->translate(address, size);
  if (bytes != nullptr) {
    std::memcpy(bytes, from, size);
    return;
  }
  faults_.add(FaultKind::kUseAfterFree, what + " writes memory that is gone by now");
}

cudaError_t Simulator::free(void* pointer, bool host_memory) {
  if (pointer == nullptr) return cudaSuccess;
  Allocation* allocation = memory_->find(reinterpret_cast<uintptr_t>(pointer));
  const bool known = allocation != nullptr &&
                     allocation->begin == reinterpret_cast<uintptr_t>(pointer) &&
                     allocation->state == AllocationState::kLive &&
                     (allocation->type == cudaMemoryTypeHost) == host_memory;
  if (!known) {
    faults_.add(FaultKind::kInvalidHandle, "memory is freed that is not allocated");
    return cudaErrorInvalidValue;
  }
  const AccessLog::Entry* user =
      accesses_.find_pending(allocation->begin, allocation->size, scheduler_->host_clock());
  if (user != nullptr) {
    faults_.add(FaultKind::kFreeInUse,
                "memory is freed while " + user->what + " that uses it was not waited for");
  }
  memory_->release(*allocation);
  return cudaSuccess;
}

cudaError_t Simulator::free_async(void* pointer, Stream& stream) {
  if (pointer == nullptr) return cudaSuccess;
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  Allocation* allocation = memory_->find(address);
  if (allocation == nullptr || allocation->begin != address ||
      allocation->state != AllocationState::kLive) {
    faults_.add(FaultKind::kInvalidHandle, "memory is freed that is not allocated");
    return cudaErrorInvalidValue;
  }
  enqueue(stream, "cudaFreeAsync", {{address, allocation->size, true}}, [this, address] {
    Allocation* pending = memory_->find(address);
    if (pending != nullptr && pending->state == AllocationState::kFreePending) {
      memory_->release(*pending);
    }
  });
  allocation->state = AllocationState::kFreePending;
  return cudaSuccess;
}

Live Simulator::live() const {
  Live live;
  live.device_allocations = memory_->live_count(true);
  live.device_bytes = memory_->live_bytes();
  live.host_allocations = memory_->live_count(false);
  live.streams = streams_.size();
  live.green_contexts = green_contexts_.count();
  live.events = events_.size();
  live.runtimes = objects_.runtimes;
  live.engines = objects_.engines;
  live.contexts = objects_.contexts;
  live.pending_operations = scheduler_->pending();
  return live;
}

}  // namespace gpusim
