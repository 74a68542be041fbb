#include "driver_api.h"

#include "problem.h"

namespace linkcheck::runner {
namespace {

// CUDA's first version that has all of them (streams of green contexts came last): the interface
// that is asked for, whatever the driver's own version is.
constexpr unsigned int kInterfaceVersion = 12050;

template <typename Function>
void look_up(const char* name, Function& function) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t result =
      cudaGetDriverEntryPointByVersion(name, &found, kInterfaceVersion, cudaEnableDefault, &status);
  if (result != cudaSuccess) {
    throw Problem(std::string("no green context: the driver cannot be asked for ") + name + ": " +
                  cudaGetErrorName(result));
  }
  if (status != cudaDriverEntryPointSuccess || found == nullptr) {
    throw Problem(std::string("no green context: the driver has no ") + name +
                  "; it must be of CUDA 12.5 (555) or newer");
  }
  function = reinterpret_cast<Function>(found);
}

}  // namespace

DriverApi DriverApi::load() {
  DriverApi api;
  look_up("cuDeviceGet", api.get_device);
  look_up("cuDeviceGetDevResource", api.get_device_resource);
  look_up("cuDevSmResourceSplitByCount", api.split_by_count);
  look_up("cuDevResourceGenerateDesc", api.generate_description);
  look_up("cuGreenCtxCreate", api.create_green_context);
  look_up("cuGreenCtxDestroy", api.destroy_green_context);
  look_up("cuGreenCtxStreamCreate", api.create_green_stream);
  return api;
}

std::string name_of(CUresult result) {
  return std::string(cudaGetErrorName(static_cast<cudaError_t>(result))) + " (" +
         std::to_string(static_cast<int>(result)) + ")";
}

}  // namespace linkcheck::runner
