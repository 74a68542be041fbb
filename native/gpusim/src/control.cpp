// What tests call to steer the simulator: a thin, locked front of it.
#include "gpusim/control.h"

#include <mutex>

#include "held_call.h"
#include "simulator.h"

namespace gpusim {
namespace {

class Locked {
 public:
  Locked() : lock_(Simulator::instance().mutex()) {}
  Simulator* operator->() const { return &Simulator::instance(); }

 private:
  Lock lock_;
};

}  // namespace

void reset(const Settings& settings) {
  Locked()->reset(settings);
  cudaGetLastError();
}

const char* to_string(FaultKind kind) {
  switch (kind) {
    case FaultKind::kUseAfterFree:
      return "use after free";
    case FaultKind::kOutOfBounds:
      return "out of bounds";
    case FaultKind::kFreeInUse:
      return "free in use";
    case FaultKind::kUnorderedAccess:
      return "unordered access";
    case FaultKind::kContextShared:
      return "context shared";
    case FaultKind::kLateWait:
      return "late wait";
    case FaultKind::kInvalidHandle:
      return "invalid handle";
    case FaultKind::kWrongDevice:
      return "wrong device";
  }
  return "unknown fault";
}

std::vector<Fault> faults() { return Locked()->faults().all(); }
void clear_faults() { Locked()->faults().clear(); }
Live live() { return Locked()->live(); }

std::string leak_report() {
  const Live now = live();
  std::string text;
  const auto line = [&text](const char* what, size_t count) {
    if (count != 0) text += std::to_string(count) + " " + what + " left\n";
  };
  line("device allocations", now.device_allocations);
  line("host allocations", now.host_allocations);
  line("streams", now.streams);
  line("green contexts", now.green_contexts);
  line("events", now.events);
  line("runtimes", now.runtimes);
  line("engines", now.engines);
  line("execution contexts", now.contexts);
  line("operations not run", now.pending_operations);
  return text;
}

void fail_call(const std::string& call, uint64_t nth, cudaError_t error) {
  Locked()->call_log().add_failure(call, nth, error);
}
void clear_failures() { Locked()->call_log().clear_failures(); }
std::vector<std::string> calls() { return Locked()->call_log().calls(); }
void clear_calls() {
  Locked()->call_log().clear_calls();
  Locked()->kernel_log().clear();
}
std::vector<KernelRun> kernel_runs() { return Locked()->kernel_log().runs(); }
int64_t last_weight_budget() { return Locked()->objects().last_weight_budget; }
void run_all() { Locked()->scheduler().run_all(); }

std::vector<unsigned char> peek(const void* device_pointer, size_t size) {
  std::vector<unsigned char> bytes(size, kFreedByte);
  Locked()->read(reinterpret_cast<uintptr_t>(device_pointer), bytes.data(), size, "peek");
  return bytes;
}

bool is_in_call() { return CallMutex::held_by_this_thread(); }

void hold_call(const std::string& call) { hold_next(call); }

void wait_for_held_call() { wait_until_held(); }

void release_held_call() { release_held(); }

}  // namespace gpusim
