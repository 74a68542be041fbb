// How a test steers and questions the simulated GPU. Nothing here exists on a real one.
//
// gpusim runs no work until something waits for it, then runs streams in an order that the seed
// chooses. So a wait that is missing shows as wrong data or as a fault here, on any machine,
// instead of once a month on a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cuda_runtime_api.h"

namespace gpusim {

struct Settings {
  uint64_t seed = 1;                      // chooses the order in which streams make progress
  int devices = 1;                        // how many GPUs there are
  bool integrated = false;                // cudaDevAttrIntegrated
  bool pageable_access = false;           // the GPU can read ordinary host memory in place
  bool memory_pools = true;               // cudaMallocAsync works
  int sms = 16;                           // multiprocessors of each device
  int sm_granularity = 2;                 // a part of them is a multiple of this, or all
  bool green_contexts = true;             // the driver has the functions that make them
  size_t memory_bytes = size_t{1} << 30;  // of each device; beyond it cudaErrorMemoryAllocation
};

// The environment variable GPUSIM_SETTINGS gives what a process begins with, for programs that are
// not tests themselves: "devices=2,sms=132,sm_granularity=8,green_contexts=0".

// Starts afresh: no streams, allocations, events, faults, failures or call log. Handles from before
// become invalid. Must not run while another thread uses the simulator.
GPUSIM_API void reset(const Settings& settings = {});

enum class FaultKind {
  kUseAfterFree,     // work touches memory that was freed
  kOutOfBounds,      // work touches device memory outside every allocation
  kFreeInUse,        // memory freed while work that touches it may still run
  kUnorderedAccess,  // two pieces of work touch the same bytes, one writes, nothing orders them
  kContextShared,    // one execution context enqueued on two streams with nothing that orders them
  kLateWait,       // an execution context reconfigured or destroyed before its work was waited for
  kInvalidHandle,  // a stream, event or pointer that does not exist (any more)
  kWrongDevice     // an object of one device used with another
};
GPUSIM_API const char* to_string(FaultKind kind);

struct Fault {
  FaultKind kind;
  std::string text;
};
GPUSIM_API std::vector<Fault> faults();
GPUSIM_API void clear_faults();

// What exists now. After a test, everything must be back at zero; per-thread and legacy streams are
// not counted.
struct Live {
  size_t device_allocations = 0;
  size_t device_bytes = 0;
  size_t host_allocations = 0;
  size_t streams = 0;
  size_t green_contexts = 0;
  size_t events = 0;
  size_t runtimes = 0;
  size_t engines = 0;
  size_t contexts = 0;
  size_t pending_operations = 0;
};
GPUSIM_API Live live();
GPUSIM_API std::string leak_report();  // empty when nothing is left

// Makes the nth call (from 1, counted from now) of `call` fail: a CUDA function name,
// "IExecutionContext::enqueueV3" and the like, or "*" for any call. A CUDA call returns `error` and
// does nothing; a TensorRT call returns false or null.
GPUSIM_API void fail_call(const std::string& call, uint64_t nth,
                          cudaError_t error = cudaErrorUnknown);
GPUSIM_API void clear_failures();

// Holds up the next call of `call`, a function of the CUDA runtime, "IExecutionContext::enqueueV3",
// "ICudaEngine::createExecutionContext" or "IRuntime::deserializeCudaEngine", before it does
// anything; calls of other threads go on.
GPUSIM_API void hold_call(const std::string& call);
GPUSIM_API void wait_for_held_call();  // until a thread is held up there
GPUSIM_API void release_held_call();

// Names of all calls that can fail, in the order they were made, since reset() or clear_calls().
GPUSIM_API std::vector<std::string> calls();
GPUSIM_API void clear_calls();

// The weight-streaming budget that an engine took last, in bytes; -1 if none did since reset().
GPUSIM_API int64_t last_weight_budget();

// Which multiprocessors each kernel that ran since reset() or clear_calls() could run on, in the
// order in which they ran. With GPUSIM_KERNEL_LOG=FILE in the environment each is also a line of
// that file: "kernel on device 0, SMs 0 to 7".
struct KernelRun {
  int device = 0;
  int first_sm = 0;
  int sm_count = 0;
};
GPUSIM_API std::vector<KernelRun> kernel_runs();

// Runs everything that is queued, on every device. Tests use it to look at memory; it orders
// nothing.
GPUSIM_API void run_all();

// Whether this thread is inside a simulated call, also while that one calls back: what is allocated
// meanwhile is the simulator's.
GPUSIM_API bool is_in_call();

// Bytes behind a device pointer, for assertions; reads what is there now and waits for nothing.
GPUSIM_API std::vector<unsigned char> peek(const void* device_pointer, size_t size);

inline constexpr unsigned char kFreshByte = 0xCD;  // what new memory holds
inline constexpr unsigned char kFreedByte = 0xDB;  // what is read from freed memory

}  // namespace gpusim
