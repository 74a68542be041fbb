// The driver functions that make green contexts, over the simulator. Not exported: a program gets
// them from cudaGetDriverEntryPointByVersion(), as it must with a real driver that it does not
// link.
#include <cuda.h>

#include <cstring>
#include <mutex>

#include "simulator.h"

namespace gpusim {
namespace {

// Counted and failed on demand like a call of the runtime, but without a last error.
template <typename Body>
CUresult driver_call(const char* name, Body body) {
  Simulator& simulator = Simulator::instance();
  const std::lock_guard<std::mutex> lock(simulator.mutex());
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
};

template <typename Function>
EntryPoint entry(const char* name, Function* function, unsigned int since) {
  return {name, reinterpret_cast<void*>(function), since};
}

constexpr unsigned int kFirstVersionWithGreenContexts = 12040;

const EntryPoint* find_entry_point(const char* symbol, const Settings& settings) {
  static const EntryPoint points[] = {
      entry("cuDeviceGet", cuDeviceGet, 2000),
      entry("cuDeviceGetDevResource", cuDeviceGetDevResource, kFirstVersionWithGreenContexts),
      entry("cuDevSmResourceSplitByCount", cuDevSmResourceSplitByCount,
            kFirstVersionWithGreenContexts),
      entry("cuDevResourceGenerateDesc", cuDevResourceGenerateDesc, kFirstVersionWithGreenContexts),
      entry("cuGreenCtxCreate", cuGreenCtxCreate, kFirstVersionWithGreenContexts),
      entry("cuGreenCtxDestroy", cuGreenCtxDestroy, kFirstVersionWithGreenContexts),
      entry("cuGreenCtxStreamCreate", cuGreenCtxStreamCreate, 12050)};
  for (const EntryPoint& point : points) {
    if (std::strcmp(point.name, symbol) != 0) continue;
    return point.since < kFirstVersionWithGreenContexts || settings.green_contexts ? &point
                                                                                   : nullptr;
  }
  return nullptr;
}

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
  const std::lock_guard<std::mutex> lock(simulator.mutex());
  const cudaError_t error = simulator.call_log().enter("cudaGetDriverEntryPointByVersion");
  gpusim::set_last_error(error);
  if (error != cudaSuccess) return error;
  *function = nullptr;
  const gpusim::EntryPoint* point = gpusim::find_entry_point(symbol, simulator.settings());
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

CUresult cuGreenCtxStreamCreate(CUstream* phStream, CUgreenCtx greenCtx, unsigned int flags, int) {
  return driver_call("cuGreenCtxStreamCreate", [=](Simulator& simulator) {
    if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    *phStream = simulator.create_green_stream(number(greenCtx));
    return *phStream == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
  });
}

}  // extern "C"
