// The driver functions that make green contexts, over the simulator. Not exported: a program gets
// them from cudaGetDriverEntryPointByVersion(), as it must with a real driver that it does not
// link.
#include <cuda.h>

#include <cstring>
#include <mutex>
#include <vector>

#include "simulator.h"

namespace gpusim {
namespace {

// Counted and failed on demand like a call of the runtime, but without a last error.
template <typename Body>
CUresult driver_call(const char* name, Body body) {
  Simulator& simulator = Simulator::instance();
  const gpusim::Lock lock(simulator.mutex());
  const cudaError_t error = simulator.call_log().enter(name);
  if (error != cudaSuccess) return static_cast<CUresult>(error);
  return body(simulator);
}

// Which SMs a resource stands for, and of which device, is kept in the padding, as a real driver
// does: nothing a caller may look at.
CUdevResource to_resource(const GreenContext& part, int granularity) {
  CUdevResource resource{};
  resource.type = CU_DEV_RESOURCE_TYPE_SM;
  resource.sm.smCount = static_cast<unsigned int>(part.sms.count);
  resource.sm.minSmPartitionSize = static_cast<unsigned int>(granularity);
  resource.sm.smCoscheduledAlignment = static_cast<unsigned int>(granularity);
  static_assert(sizeof(part) <= sizeof(resource._internal_padding));
  std::memcpy(resource._internal_padding, &part, sizeof(part));
  return resource;
}

GreenContext to_part(const CUdevResource& resource) {
  GreenContext part;
  std::memcpy(&part, resource._internal_padding, sizeof(part));
  return part;
}

template <typename Handle>
uintptr_t number(Handle handle) {
  return reinterpret_cast<uintptr_t>(handle);
}

// One of the driver's functions, and the version of CUDA that it came with.
struct EntryPoint {
  const char* name;
  void* function;
  unsigned int since;
  unsigned int until = 1000000;  // a later version has the name for another function
};

template <typename Function>
EntryPoint entry(const char* name, Function* function, unsigned int since,
                 unsigned int until = 1000000) {
  return {name, reinterpret_cast<void*>(function), since, until};
}

constexpr unsigned int kFirstVersionWithGreenContexts = 12040;

const EntryPoint* find_entry_point(const char* symbol, unsigned int version,
                                   const Settings& settings) {
  static const EntryPoint points[] = {
      entry("cuDeviceGet", cuDeviceGet, 2000),
      entry("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain, 7000),
      entry("cuDevicePrimaryCtxRelease", cuDevicePrimaryCtxRelease, 11000),
      entry("cuStreamIsCapturing", cuStreamIsCapturing, 10000),
      entry("cuPointerGetAttributes", cuPointerGetAttributes, 7000),
      entry("cuEventRecord", cuEventRecord, 2000),
      entry("cuEventQuery", cuEventQuery, 2000),
      entry("cuCtxGetCurrent", cuCtxGetCurrent, 4000),
      entry("cuCtxSetCurrent", cuCtxSetCurrent, 4000),
      entry("cuCtxPushCurrent", cuCtxPushCurrent, 4000),
      entry("cuCtxPopCurrent", cuCtxPopCurrent, 4000),
      entry("cuStreamGetCtx", cuStreamGetCtx, 9020, 12050),
      entry("cuStreamGetCtx", cuStreamGetCtx_v2, 12050),
      entry("cuCtxFromGreenCtx", cuCtxFromGreenCtx, kFirstVersionWithGreenContexts),
      entry("cuDeviceGetDevResource", cuDeviceGetDevResource, kFirstVersionWithGreenContexts),
      entry("cuDevSmResourceSplitByCount", cuDevSmResourceSplitByCount,
            kFirstVersionWithGreenContexts),
      entry("cuDevResourceGenerateDesc", cuDevResourceGenerateDesc, kFirstVersionWithGreenContexts),
      entry("cuGreenCtxCreate", cuGreenCtxCreate, kFirstVersionWithGreenContexts),
      entry("cuGreenCtxDestroy", cuGreenCtxDestroy, kFirstVersionWithGreenContexts),
      entry("cuGreenCtxStreamCreate", cuGreenCtxStreamCreate, 12050)};
  for (const EntryPoint& point : points) {
    if (std::strcmp(point.name, symbol) != 0 || version >= point.until) continue;
    return point.since < kFirstVersionWithGreenContexts || settings.green_contexts ? &point
                                                                                   : nullptr;
  }
  return nullptr;
}

// A context's handle is its green context's; a primary one's says which device it is of.
constexpr uintptr_t kPrimaryContext = uintptr_t{0x6B6} << 44;

CUcontext context_of(uintptr_t green_context, int device) {
  return reinterpret_cast<CUcontext>(
      green_context != 0 ? green_context : kPrimaryContext + static_cast<uintptr_t>(device) * 16);
}

CUcontext current_context(const Simulator& simulator) {
  return context_of(simulator.current_green_context(), simulator.current_device());
}

bool make_current(Simulator& simulator, CUcontext context) {
  const uintptr_t handle = number(context);
  if (handle < kPrimaryContext) return simulator.set_current_green_context(handle);
  simulator.set_current_device(static_cast<int>((handle - kPrimaryContext) / 16));
  return true;
}

thread_local std::vector<CUcontext> pushed_contexts;

}  // namespace
}  // namespace gpusim

using gpusim::driver_call;
using gpusim::GreenContext;
using gpusim::GreenContexts;
using gpusim::number;
using gpusim::Simulator;

extern "C" {

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function,
                                             unsigned int version, unsigned long long,
                                             enum cudaDriverEntryPointQueryResult* status) {
  Simulator& simulator = Simulator::instance();
  const gpusim::Lock lock(simulator.mutex());
  const cudaError_t error = simulator.call_log().enter("cudaGetDriverEntryPointByVersion");
  gpusim::set_last_error(error);
  if (error != cudaSuccess) return error;
  *function = nullptr;
  const gpusim::EntryPoint* point = gpusim::find_entry_point(symbol, version, simulator.settings());
  if (point == nullptr) {
    *status = cudaDriverEntryPointSymbolNotFound;
  } else if (version < point->since) {
    *status = cudaDriverEntryPointVersionNotSufficent;
  } else {
    *function = point->function;
    *status = cudaDriverEntryPointSuccess;
  }
  return cudaSuccess;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return driver_call("cuDeviceGet", [=](Simulator& simulator) {
    if (ordinal < 0 || ordinal >= simulator.settings().devices) return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource* resource, CUdevResourceType type) {
  return driver_call("cuDeviceGetDevResource", [=](Simulator& simulator) {
    if (device < 0 || device >= simulator.settings().devices) return CUDA_ERROR_INVALID_DEVICE;
    if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    *resource = gpusim::to_resource({device, {0, simulator.settings().sms}},
                                    simulator.settings().sm_granularity);
    return CUDA_SUCCESS;
  });
}

CUresult cuDevSmResourceSplitByCount(CUdevResource* result, unsigned int* nbGroups,
                                     const CUdevResource* input, CUdevResource*, unsigned int,
                                     unsigned int minCount) {
  return driver_call("cuDevSmResourceSplitByCount", [=](Simulator& simulator) {
    if (result == nullptr || *nbGroups != 1) return CUDA_ERROR_INVALID_VALUE;  // no more is needed
    if (minCount > input->sm.smCount) return CUDA_ERROR_INVALID_VALUE;
    const int granularity = simulator.settings().sm_granularity;
    const GreenContext whole = gpusim::to_part(*input);
    const auto part = GreenContexts::split(whole.sms, static_cast<int>(minCount), granularity);
    if (!part) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    *result = gpusim::to_resource({whole.device, *part}, granularity);
    return CUDA_SUCCESS;
  });
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* phDesc, CUdevResource* resources,
                                   unsigned int nbResources) {
  return driver_call("cuDevResourceGenerateDesc", [=](Simulator& simulator) {
    if (nbResources != 1) return CUDA_ERROR_INVALID_VALUE;
    const uintptr_t handle = simulator.new_handle();
    simulator.green_contexts().add_description(handle, gpusim::to_part(*resources));
    *phDesc = reinterpret_cast<CUdevResourceDesc>(handle);
    return CUDA_SUCCESS;
  });
}

CUresult cuGreenCtxCreate(CUgreenCtx* phCtx, CUdevResourceDesc desc, CUdevice dev,
                          unsigned int flags) {
  return driver_call("cuGreenCtxCreate", [=](Simulator& simulator) {
    const GreenContext* part = simulator.green_contexts().find_description(number(desc));
    if (part == nullptr || flags != CU_GREEN_CTX_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
    if (part->device != dev) return CUDA_ERROR_INVALID_DEVICE;
    const uintptr_t handle = simulator.new_handle();
    simulator.green_contexts().create(handle, *part);
    *phCtx = reinterpret_cast<CUgreenCtx>(handle);
    return CUDA_SUCCESS;
  });
}

CUresult cuGreenCtxDestroy(CUgreenCtx hCtx) {
  return driver_call("cuGreenCtxDestroy", [=](Simulator& simulator) {
    return simulator.destroy_green_context(number(hCtx)) ? CUDA_SUCCESS
                                                         : CUDA_ERROR_INVALID_CONTEXT;
  });
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* pctx, CUdevice dev) {
  return driver_call("cuDevicePrimaryCtxRetain", [=](Simulator&) {
    *pctx = gpusim::context_of(0, dev);
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRelease(CUdevice) {
  return driver_call("cuDevicePrimaryCtxRelease", [](Simulator&) { return CUDA_SUCCESS; });
}

CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus* captureStatus) {
  return driver_call("cuStreamIsCapturing", [=](Simulator& simulator) {
    const gpusim::Stream* stream = simulator.resolve(hStream);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    *captureStatus = !stream->capture             ? CU_STREAM_CAPTURE_STATUS_NONE
                     : stream->capture->is_broken ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                                  : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return CUDA_SUCCESS;
  });
}

CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute* attributes,
                                void** data, CUdeviceptr ptr) {
  return driver_call("cuPointerGetAttributes", [=](Simulator& simulator) {
    const gpusim::Allocation* allocation = simulator.memory().find(static_cast<uintptr_t>(ptr));
    const bool known =
        allocation != nullptr && allocation->state != gpusim::AllocationState::kFreed;
    if (!known) return CUDA_SUCCESS;  // as a real driver: what is asked stays as it was
    for (unsigned int i = 0; i < numAttributes; ++i) {
      if (attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE) {
        *static_cast<unsigned int*>(data[i]) =
            allocation->type == cudaMemoryTypeHost ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
      } else if (attributes[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED) {
        *static_cast<int*>(data[i]) = allocation->type == cudaMemoryTypeManaged ? 1 : 0;
      } else {
        *static_cast<int*>(data[i]) = allocation->device;
      }
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuEventRecord(CUevent hEvent, CUstream hStream) {
  return driver_call("cuEventRecord", [=](Simulator& simulator) {
    return static_cast<CUresult>(simulator.record(hEvent, hStream));
  });
}

CUresult cuEventQuery(CUevent hEvent) {
  return driver_call("cuEventQuery", [=](Simulator& simulator) {
    return static_cast<CUresult>(simulator.query(hEvent));
  });
}

CUresult cuCtxGetCurrent(CUcontext* pctx) {
  return driver_call("cuCtxGetCurrent", [=](Simulator& simulator) {
    *pctx = gpusim::current_context(simulator);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetCurrent(CUcontext ctx) {
  return driver_call("cuCtxSetCurrent", [=](Simulator& simulator) {
    return gpusim::make_current(simulator, ctx) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
  });
}

CUresult cuCtxPushCurrent(CUcontext ctx) {
  return driver_call("cuCtxPushCurrent", [=](Simulator& simulator) {
    const CUcontext former = gpusim::current_context(simulator);
    if (!gpusim::make_current(simulator, ctx)) return CUDA_ERROR_INVALID_CONTEXT;
    gpusim::pushed_contexts.push_back(former);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxPopCurrent(CUcontext* pctx) {
  return driver_call("cuCtxPopCurrent", [=](Simulator& simulator) {
    if (gpusim::pushed_contexts.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    *pctx = gpusim::current_context(simulator);
    gpusim::make_current(simulator, gpusim::pushed_contexts.back());
    gpusim::pushed_contexts.pop_back();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxFromGreenCtx(CUcontext* pContext, CUgreenCtx hCtx) {
  return driver_call("cuCtxFromGreenCtx", [=](Simulator& simulator) {
    if (simulator.green_contexts().find(number(hCtx)) == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    *pContext = gpusim::context_of(number(hCtx), 0);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetCtx(CUstream hStream, CUcontext* pctx) {
  return driver_call("cuStreamGetCtx", [=](Simulator& simulator) {
    const gpusim::Stream* stream = simulator.resolve(hStream);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    *pctx = gpusim::context_of(stream->green_context, stream->device);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetCtx_v2(CUstream hStream, CUcontext* pCtx, CUgreenCtx* pGreenCtx) {
  return driver_call("cuStreamGetCtx_v2", [=](Simulator& simulator) {
    const gpusim::Stream* stream = simulator.resolve(hStream);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    *pCtx = gpusim::context_of(0, stream->device);
    *pGreenCtx = reinterpret_cast<CUgreenCtx>(stream->green_context);
    return CUDA_SUCCESS;
  });
}

CUresult cuGreenCtxStreamCreate(CUstream* phStream, CUgreenCtx greenCtx, unsigned int flags, int) {
  return driver_call("cuGreenCtxStreamCreate", [=](Simulator& simulator) {
    if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    *phStream = simulator.create_green_stream(number(greenCtx));
    return *phStream == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
  });
}

}  // extern "C"
