#include "green_context.h"

#include <cstdio>

#include "problem.h"

namespace linkcheck::runner {
namespace {

void require_driver(CUresult result, const std::string& what) {
  if (result != CUDA_SUCCESS) throw Problem("no green context: " + what + ": " + name_of(result));
}

std::string count_of(unsigned int sms) { return std::to_string(sms) + (sms == 1 ? " SM" : " SMs"); }

}  // namespace

GreenContext::GreenContext(unsigned int sms) : api_(DriverApi::load()) {
  int ordinal = 0;
  const cudaError_t current = cudaGetDevice(&ordinal);
  if (current != cudaSuccess) {
    throw Problem(std::string("no green context: cudaGetDevice: ") + cudaGetErrorName(current));
  }
  CUdevice device = 0;
  require_driver(api_.get_device(&device, ordinal), "no such GPU");
  CUdevResource all{};
  require_driver(api_.get_device_resource(device, &all, CU_DEV_RESOURCE_TYPE_SM),
                 "the GPU's SMs are not known");
  const std::string of_all = count_of(sms) + " of the GPU's " + std::to_string(all.sm.smCount);
  if (sms > all.sm.smCount) throw Problem("no green context: there are no " + of_all);
  CUdevResource part{};
  unsigned int groups = 1;
  require_driver(api_.split_by_count(&part, &groups, &all, nullptr, 0, sms),
                 "no part with " + of_all);
  if (groups != 1) throw Problem("no green context: no part with " + of_all);
  CUdevResourceDesc description = nullptr;
  require_driver(api_.generate_description(&description, &part, 1), "no description of its SMs");
  require_driver(
      api_.create_green_context(&context_, description, device, CU_GREEN_CTX_DEFAULT_STREAM),
      "with " + count_of(part.sm.smCount));
  sms_ = part.sm.smCount;
}

GreenContext::~GreenContext() {
  const CUresult result = api_.destroy_green_context(context_);
  if (result != CUDA_SUCCESS) {
    std::fprintf(stderr, "executorch_runner: the green context could not be destroyed: %s\n",
                 name_of(result).c_str());
  }
}

cudaStream_t GreenContext::create_stream() const {
  CUstream stream = nullptr;
  require_driver(api_.create_green_stream(&stream, context_, CU_STREAM_NON_BLOCKING, 0),
                 "no stream of it");
  return stream;
}

}  // namespace linkcheck::runner
