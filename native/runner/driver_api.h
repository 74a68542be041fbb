// The driver functions that make green contexts, looked up when they are asked for: the runner
// links no libcuda, and without --green_context_sms it runs on drivers that lack them.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <string>

#if CUDA_VERSION < 12050
#error \
    "the runner needs the headers of CUDA 12.5 or newer: older ones know no green context's streams"
#endif

namespace linkcheck::runner {

struct DriverApi {
  decltype(&cuDeviceGet) get_device = nullptr;
  decltype(&cuDeviceGetDevResource) get_device_resource = nullptr;
  decltype(&cuDevSmResourceSplitByCount) split_by_count = nullptr;
  decltype(&cuDevResourceGenerateDesc) generate_description = nullptr;
  decltype(&cuGreenCtxCreate) create_green_context = nullptr;
  decltype(&cuGreenCtxDestroy) destroy_green_context = nullptr;
  decltype(&cuGreenCtxStreamCreate) create_green_stream = nullptr;

  // Throws Problem, naming the function, when the driver lacks one.
  static DriverApi load();
};

// The name of a driver's error, as the runtime's cudaError_t of the same number is called.
std::string name_of(CUresult result);

}  // namespace linkcheck::runner
