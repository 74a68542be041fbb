#include "driver_api.h"

#include "cuda_call.h"

namespace linkcheck::trt {
namespace {

// `version` chooses between the forms that one function had, as 1000 * major + 10 * minor.
template <typename Function>
void look_up(const char* name, unsigned int version, Function& function) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  const cudaError_t result =
      cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &status);
#else
  static_cast<void>(version);
  const cudaError_t result = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &status);
#endif
  if (!cuda_succeeded(result, name) || status != cudaDriverEntryPointSuccess) return;
  function = reinterpret_cast<Function>(found);
}

}  // namespace

DriverApi DriverApi::load() {
  constexpr unsigned int kContexts = 4000;
  constexpr unsigned int kStreamContext = 9020;
  DriverApi api;
  look_up("cuCtxGetCurrent", kContexts, api.get_current);
  look_up("cuCtxSetCurrent", kContexts, api.set_current);
  look_up("cuCtxPushCurrent", kContexts, api.push_current);
  look_up("cuCtxPopCurrent", kContexts, api.pop_current);
  look_up("cuStreamGetCtx", kStreamContext, api.get_stream_context);
#if CUDA_VERSION >= 12050
  constexpr unsigned int kStreamContexts = 12050;
  look_up("cuStreamGetCtx", kStreamContexts, api.get_stream_contexts);
#endif
  return api;
}

Status driver_status(CUresult result, const char* what) {
  return cuda_status(static_cast<cudaError_t>(result), what);
}

}  // namespace linkcheck::trt
