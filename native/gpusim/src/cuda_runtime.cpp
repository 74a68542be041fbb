// The CUDA runtime's C functions over the simulator. Each one translates arguments; the behaviour
// is in the simulator.
#include "cuda_runtime_api.h"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "held_call.h"
#include "simulator.h"

namespace gpusim {
namespace {

thread_local cudaError_t last_error = cudaSuccess;

// Every call that can fail goes through here: counted, failed on demand, and remembered as the
// thread's last error.
template <typename Body>
cudaError_t call(const char* name, Body body) {
  pause_if_held(name);
  Simulator& simulator = Simulator::instance();
  const gpusim::Lock lock(simulator.mutex());
  cudaError_t result = simulator.call_log().enter(name);
  if (result == cudaSuccess) result = body(simulator);
  set_last_error(result);
  return result;
}

uintptr_t address_of(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

bool device_exists(const Simulator& simulator, int device) {
  return device >= 0 && device < simulator.settings().devices;
}

cudaError_t allocate(Simulator& simulator, void** pointer, size_t size, cudaMemoryType type) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  *pointer = nullptr;
  if (size == 0) return cudaSuccess;
  const Allocation* allocation =
      simulator.memory().allocate(size, type, simulator.current_device());
  if (allocation == nullptr) return cudaErrorMemoryAllocation;
  *pointer = reinterpret_cast<void*>(allocation->begin);
  return cudaSuccess;
}

// True when `kind` says what the two pointers are; ordinary host memory is what the simulator did
// not hand out.
bool kind_fits(Simulator& simulator, const void* destination, const void* source,
               cudaMemcpyKind kind) {
  const auto on_device = [&](const void* pointer) {
    const Allocation* allocation = simulator.memory().find(address_of(pointer));
    return allocation != nullptr && allocation->type != cudaMemoryTypeHost;
  };
  const auto on_host = [&](const void* pointer) {
    const Allocation* allocation = simulator.memory().find(address_of(pointer));
    return allocation == nullptr ? !simulator.memory().is_simulated(address_of(pointer))
                                 : allocation->type != cudaMemoryTypeDevice;
  };
  switch (kind) {
    case cudaMemcpyHostToHost:
      return on_host(destination) && on_host(source);
    case cudaMemcpyHostToDevice:
      return on_device(destination) && on_host(source);
    case cudaMemcpyDeviceToHost:
      return on_host(destination) && on_device(source);
    case cudaMemcpyDeviceToDevice:
      return on_device(destination) && on_device(source);
    case cudaMemcpyDefault:
      return true;
  }
  return false;
}

cudaError_t enqueue_copy(Simulator& simulator, void* destination, const void* source, size_t count,
                         cudaMemcpyKind kind, Stream& stream) {
  if (count == 0) return cudaSuccess;
  if (destination == nullptr || source == nullptr) return cudaErrorInvalidValue;
  const uintptr_t to = address_of(destination);
  const uintptr_t from = address_of(source);
  // A freed pointer is a fault, reported with the enqueue; a wrong direction is an error of the
  // call.
  const bool gone = simulator.memory().translate(to, count) == nullptr ||
                    simulator.memory().translate(from, count) == nullptr;
  if (!gone && !kind_fits(simulator, destination, source, kind)) return cudaErrorInvalidValue;
  simulator.enqueue(stream, "copy", {{from, count, false}, {to, count, true}},
                    [&simulator, to, from, count] {
                      std::vector<unsigned char> bytes(count);
                      simulator.read(from, bytes.data(), count, "copy");
                      simulator.write(to, bytes.data(), count, "copy");
                    });
  return cudaSuccess;
}

cudaError_t create_event(cudaEvent_t* event) {
  return call("cudaEventCreateWithFlags", [event](Simulator& simulator) {
    if (event == nullptr) return cudaErrorInvalidValue;
    *event = simulator.create_event();
    return cudaSuccess;
  });
}

cudaError_t create_stream(cudaStream_t* stream, bool blocking) {
  return call("cudaStreamCreateWithFlags", [stream, blocking](Simulator& simulator) {
    if (stream == nullptr) return cudaErrorInvalidValue;
    *stream = simulator.create_stream(blocking);
    return cudaSuccess;
  });
}

cudaError_t allocate_host(const char* name, void** pointer, size_t size) {
  return call(name, [pointer, size](Simulator& simulator) {
    return allocate(simulator, pointer, size, cudaMemoryTypeHost);
  });
}

}  // namespace

void set_last_error(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
}

}  // namespace gpusim

using gpusim::address_of;
using gpusim::Allocation;
using gpusim::AllocationState;
using gpusim::call;
using gpusim::Event;
using gpusim::FaultKind;
using gpusim::Simulator;
using gpusim::Stream;

extern "C" {

cudaError_t cudaRuntimeGetVersion(int* version) {
  return call("cudaRuntimeGetVersion", [version](Simulator&) {
    *version = CUDART_VERSION;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceCount(int* count) {
  return call("cudaGetDeviceCount", [count](Simulator& simulator) {
    *count = simulator.settings().devices;
    return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return call("cudaGetDevice", [device](Simulator& simulator) {
    *device = simulator.current_device();
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  return call("cudaSetDevice", [device](Simulator& simulator) {
    if (!gpusim::device_exists(simulator, device)) return cudaErrorInvalidDevice;
    simulator.set_current_device(device);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr attribute, int device) {
  return call("cudaDeviceGetAttribute", [value, attribute, device](Simulator& simulator) {
    if (!gpusim::device_exists(simulator, device)) return cudaErrorInvalidDevice;
    switch (attribute) {
      case cudaDevAttrMultiProcessorCount:
        *value = simulator.settings().sms;
        return cudaSuccess;
      case cudaDevAttrIntegrated:
        *value = simulator.settings().integrated ? 1 : 0;
        return cudaSuccess;
      case cudaDevAttrComputeCapabilityMajor:
        *value = 9;
        return cudaSuccess;
      case cudaDevAttrComputeCapabilityMinor:
        *value = 0;
        return cudaSuccess;
      case cudaDevAttrPageableMemoryAccess:
      case cudaDevAttrCanUseHostPointerForRegisteredMem:
        *value = simulator.settings().pageable_access ? 1 : 0;
        return cudaSuccess;
      case cudaDevAttrMemoryPoolsSupported:
        *value = simulator.settings().memory_pools ? 1 : 0;
        return cudaSuccess;
    }
    return cudaErrorInvalidValue;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return call("cudaDeviceSynchronize", [](Simulator& simulator) {
    if (!simulator.allows_unsafe_call()) return cudaErrorStreamCaptureUnsupported;
    simulator.wait_for_device(simulator.current_device());
    return cudaSuccess;
  });
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = gpusim::last_error;
  gpusim::last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() { return gpusim::last_error; }

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInitializationError:
      return "cudaErrorInitializationError";
    case cudaErrorInsufficientDriver:
      return "cudaErrorInsufficientDriver";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
    case cudaErrorNotSupported:
      return "cudaErrorNotSupported";
    case cudaErrorInvalidResourceConfiguration:
      return "cudaErrorInvalidResourceConfiguration";
    case cudaErrorIllegalState:
      return "cudaErrorIllegalState";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorCapturedEvent:
      return "cudaErrorCapturedEvent";
    case cudaErrorUnknown:
      return "cudaErrorUnknown";
  }
  return "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) { return cudaGetErrorName(error); }

cudaError_t cudaMalloc(void** pointer, size_t size) {
  return call("cudaMalloc", [pointer, size](Simulator& simulator) {
    if (!simulator.allows_unsafe_call()) return cudaErrorStreamCaptureUnsupported;
    return gpusim::allocate(simulator, pointer, size, cudaMemoryTypeDevice);
  });
}

cudaError_t cudaFree(void* pointer) {
  return call("cudaFree",
              [pointer](Simulator& simulator) { return simulator.free(pointer, false); });
}

cudaError_t cudaMallocAsync(void** pointer, size_t size, cudaStream_t stream) {
  return call("cudaMallocAsync", [pointer, size, stream](Simulator& simulator) {
    if (!simulator.settings().memory_pools) return cudaErrorNotSupported;
    Stream* resolved = simulator.resolve(stream);
    if (resolved == nullptr) return cudaErrorInvalidResourceHandle;
    const cudaError_t result = gpusim::allocate(simulator, pointer, size, cudaMemoryTypeDevice);
    if (result == cudaSuccess && *pointer != nullptr) {
      // Its first use elsewhere must be ordered after this, as if it were a write.
      simulator.enqueue(*resolved, "cudaMallocAsync", {{address_of(*pointer), size, true}}, [] {});
    }
    return result;
  });
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return call("cudaFreeAsync", [pointer, stream](Simulator& simulator) {
    if (!simulator.settings().memory_pools) return cudaErrorNotSupported;
    Stream* resolved = simulator.resolve(stream);
    if (resolved == nullptr) return cudaErrorInvalidResourceHandle;
    return simulator.free_async(pointer, *resolved);
  });
}

cudaError_t cudaMallocManaged(void** pointer, size_t size, unsigned int) {
  return call("cudaMallocManaged", [pointer, size](Simulator& simulator) {
    return gpusim::allocate(simulator, pointer, size, cudaMemoryTypeManaged);
  });
}

cudaError_t cudaMallocHost(void** pointer, size_t size) {
  return gpusim::allocate_host("cudaMallocHost", pointer, size);
}

cudaError_t cudaHostAlloc(void** pointer, size_t size, unsigned int) {
  return gpusim::allocate_host("cudaHostAlloc", pointer, size);
}

cudaError_t cudaFreeHost(void* pointer) {
  return call("cudaFreeHost",
              [pointer](Simulator& simulator) { return simulator.free(pointer, true); });
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes* attributes,
                                     const void* pointer) {
  return call("cudaPointerGetAttributes", [attributes, pointer](Simulator& simulator) {
    *attributes = {cudaMemoryTypeUnregistered, -1, nullptr, const_cast<void*>(pointer)};
    const Allocation* allocation = simulator.memory().find(address_of(pointer));
    if (allocation == nullptr || allocation->state == AllocationState::kFreed) return cudaSuccess;
    attributes->type = allocation->type;
    attributes->device = allocation->device;
    attributes->devicePointer = const_cast<void*>(pointer);
    if (allocation->type == cudaMemoryTypeDevice) attributes->hostPointer = nullptr;
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpy(void* destination, const void* source, size_t count,
                       enum cudaMemcpyKind kind) {
  return call("cudaMemcpy", [=](Simulator& simulator) {
    Stream* stream = simulator.resolve(nullptr);
    const cudaError_t result =
        gpusim::enqueue_copy(simulator, destination, source, count, kind, *stream);
    simulator.wait_for_stream(*stream);
    return result;
  });
}

cudaError_t cudaMemcpyAsync(void* destination, const void* source, size_t count,
                            enum cudaMemcpyKind kind, cudaStream_t stream) {
  return call("cudaMemcpyAsync", [=](Simulator& simulator) {
    Stream* resolved = simulator.resolve(stream);
    if (resolved == nullptr) return cudaErrorInvalidResourceHandle;
    return gpusim::enqueue_copy(simulator, destination, source, count, kind, *resolved);
  });
}

cudaError_t cudaMemsetAsync(void* pointer, int value, size_t count, cudaStream_t stream) {
  return call("cudaMemsetAsync", [=](Simulator& simulator) {
    Stream* resolved = simulator.resolve(stream);
    if (resolved == nullptr) return cudaErrorInvalidResourceHandle;
    const uintptr_t to = address_of(pointer);
    simulator.enqueue(*resolved, "memset", {{to, count, true}}, [&simulator, to, value, count] {
      const std::vector<unsigned char> bytes(count, static_cast<unsigned char>(value));
      simulator.write(to, bytes.data(), count, "memset");
    });
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return gpusim::create_stream(stream, true); }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return gpusim::create_stream(stream, (flags & cudaStreamNonBlocking) == 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call("cudaStreamDestroy", [stream](Simulator& simulator) {
    if (simulator.destroy_stream(stream)) return cudaSuccess;
    simulator.faults().add(FaultKind::kInvalidHandle, "a stream that does not exist is destroyed");
    return cudaErrorInvalidResourceHandle;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call("cudaStreamSynchronize", [stream](Simulator& simulator) {
    Stream* resolved = simulator.resolve(stream);
    if (resolved == nullptr) return cudaErrorInvalidResourceHandle;
    if (resolved->capture) {
      resolved->capture->is_broken = true;
      return cudaErrorStreamCaptureUnsupported;
    }
    simulator.wait_for_stream(*resolved);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return call("cudaStreamQuery", [stream](Simulator& simulator) {
    Stream* resolved = simulator.resolve(stream);
    if (resolved == nullptr) return cudaErrorInvalidResourceHandle;
    simulator.scheduler().run_some();
    if (!simulator.scheduler().is_complete(resolved->last())) return cudaErrorNotReady;
    simulator.wait_for_stream(*resolved);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int) {
  return call("cudaStreamWaitEvent", [stream, event](Simulator& simulator) {
    Stream* resolved = simulator.resolve(stream);
    const Event* found = simulator.find_event(event);
    if (resolved == nullptr || found == nullptr) return cudaErrorInvalidResourceHandle;
    if (!found->recorded) return cudaSuccess;
    simulator.scheduler().enqueue(*resolved, {*found->recorded}, [] {});
    simulator.scheduler().order_after(*resolved, found->clock);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return call("cudaStreamGetDevice", [stream, device](Simulator& simulator) {
    Stream* resolved = simulator.resolve(stream);
    if (resolved == nullptr) return cudaErrorInvalidResourceHandle;
    // So does the real one, although it only asks.
    if (resolved->capture) {
      resolved->capture->is_broken = true;
      return cudaErrorStreamCaptureUnsupported;
    }
    *device = resolved->device;
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return gpusim::create_event(event); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int) {
  return gpusim::create_event(event);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call("cudaEventDestroy", [event](Simulator& simulator) {
    if (simulator.destroy_event(event)) return cudaSuccess;
    simulator.faults().add(FaultKind::kInvalidHandle, "an event that does not exist is destroyed");
    return cudaErrorInvalidResourceHandle;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call("cudaEventRecord",
              [event, stream](Simulator& simulator) { return simulator.record(event, stream); });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call("cudaEventQuery", [event](Simulator& simulator) { return simulator.query(event); });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call("cudaEventSynchronize", [event](Simulator& simulator) {
    const Event* found = simulator.find_event(event);
    if (found == nullptr) return cudaErrorInvalidResourceHandle;
    if (found->captured) return cudaErrorCapturedEvent;
    if (!simulator.allows_unsafe_call()) return cudaErrorStreamCaptureUnsupported;
    simulator.wait(*found);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
  return call("cudaStreamBeginCapture", [stream, mode](Simulator& simulator) {
    Stream* resolved = simulator.resolve(stream);
    if (resolved == nullptr) return cudaErrorInvalidResourceHandle;
    return simulator.begin_capture(*resolved, mode) ? cudaSuccess
                                                    : cudaErrorStreamCaptureUnsupported;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return call("cudaStreamEndCapture", [stream, graph](Simulator& simulator) {
    Stream* resolved = simulator.resolve(stream);
    if (resolved == nullptr) return cudaErrorInvalidResourceHandle;
    return simulator.end_capture(*resolved, graph);
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus* status) {
  return call("cudaStreamIsCapturing", [stream, status](Simulator& simulator) {
    const Stream* resolved = simulator.resolve(stream);
    if (resolved == nullptr) return cudaErrorInvalidResourceHandle;
    *status = !resolved->capture             ? cudaStreamCaptureStatusNone
              : resolved->capture->is_broken ? cudaStreamCaptureStatusInvalidated
                                             : cudaStreamCaptureStatusActive;
    return cudaSuccess;
  });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode* mode) {
  return call("cudaThreadExchangeStreamCaptureMode", [mode](Simulator&) {
    *mode = gpusim::exchange_capture_mode(*mode);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  return call("cudaGraphInstantiate", [exec, graph](Simulator& simulator) {
    *exec = simulator.instantiate(graph);
    return *exec == nullptr ? cudaErrorInvalidValue : cudaSuccess;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return call("cudaGraphLaunch", [exec, stream](Simulator& simulator) {
    Stream* resolved = simulator.resolve(stream);
    if (resolved == nullptr) return cudaErrorInvalidResourceHandle;
    return simulator.launch(exec, *resolved) ? cudaSuccess : cudaErrorInvalidValue;
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return call("cudaGraphExecDestroy", [exec](Simulator& simulator) {
    return simulator.destroy_graph(gpusim::address_of(exec)) ? cudaSuccess : cudaErrorInvalidValue;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call("cudaGraphDestroy", [graph](Simulator& simulator) {
    return simulator.destroy_graph(gpusim::address_of(graph)) ? cudaSuccess : cudaErrorInvalidValue;
  });
}

}  // extern "C"
