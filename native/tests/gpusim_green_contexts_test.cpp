// Green contexts of the simulated driver: its functions are had at run time only, parts are
// rounded, and misuse is a fault.
#include <cuda.h>
#include <dlfcn.h>

#include "gpusim_matchers.h"

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

template <typename Function>
Function entry_point(const char* name, unsigned int version = CUDA_VERSION) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSuccess;
  EXPECT_EQ(cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &status),
            cudaSuccess);
  EXPECT_EQ(found == nullptr, status != cudaDriverEntryPointSuccess);
  return reinterpret_cast<Function>(found);
}

class GpusimGreenContexts : public GpusimTest {
 protected:
  CUdevResource all() {
    CUdevResource resource{};
    EXPECT_EQ(entry_point<decltype(&cuDeviceGetDevResource)>("cuDeviceGetDevResource")(
                  0, &resource, CU_DEV_RESOURCE_TYPE_SM),
              CUDA_SUCCESS);
    return resource;
  }

  CUresult split(const CUdevResource& from, unsigned int sms, CUdevResource& part) {
    unsigned int groups = 1;
    return entry_point<decltype(&cuDevSmResourceSplitByCount)>("cuDevSmResourceSplitByCount")(
        &part, &groups, &from, nullptr, 0, sms);
  }

  CUgreenCtx make(unsigned int sms) {
    CUdevResource part{};
    EXPECT_EQ(split(all(), sms, part), CUDA_SUCCESS);
    CUdevResourceDesc description = nullptr;
    EXPECT_EQ(entry_point<decltype(&cuDevResourceGenerateDesc)>("cuDevResourceGenerateDesc")(
                  &description, &part, 1),
              CUDA_SUCCESS);
    CUgreenCtx context = nullptr;
    EXPECT_EQ(entry_point<decltype(&cuGreenCtxCreate)>("cuGreenCtxCreate")(
                  &context, description, 0, CU_GREEN_CTX_DEFAULT_STREAM),
              CUDA_SUCCESS);
    return context;
  }

  cudaStream_t stream_of(CUgreenCtx context) {
    CUstream stream = nullptr;
    EXPECT_EQ(entry_point<decltype(&cuGreenCtxStreamCreate)>("cuGreenCtxStreamCreate")(
                  &stream, context, CU_STREAM_NON_BLOCKING, 0),
              CUDA_SUCCESS);
    return stream;
  }

  void destroy(CUgreenCtx context) {
    EXPECT_EQ(entry_point<decltype(&cuGreenCtxDestroy)>("cuGreenCtxDestroy")(context),
              CUDA_SUCCESS);
  }
};

}  // namespace

TEST_F(GpusimGreenContexts, TheDriversFunctionsAreNotLinkedButAskedFor) {
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "cuGreenCtxCreate"), nullptr);
  EXPECT_NE(entry_point<void*>("cuGreenCtxCreate"), nullptr);
  EXPECT_EQ(entry_point<void*>("cuGreenCtxCreate", 12030), nullptr) << "not in that version yet";
  EXPECT_NE(entry_point<void*>("cuGreenCtxCreate", 12040), nullptr);
  EXPECT_EQ(entry_point<void*>("cuGreenCtxStreamCreate", 12040), nullptr) << "came one later";
  EXPECT_EQ(entry_point<void*>("cuNoSuchFunction"), nullptr);
}

TEST_F(GpusimGreenContexts, APartIsAMultipleOfTheGranularityOrAll) {
  gpusim::Settings settings;
  settings.sms = 132;
  settings.sm_granularity = 8;
  gpusim::reset(settings);
  EXPECT_EQ(all().sm.smCount, 132U);
  CUdevResource part{};
  ASSERT_EQ(split(all(), 9, part), CUDA_SUCCESS);
  EXPECT_EQ(part.sm.smCount, 16U);
  ASSERT_EQ(split(all(), 129, part), CUDA_SUCCESS);
  EXPECT_EQ(part.sm.smCount, 132U) << "all that there are";
  EXPECT_EQ(split(all(), 133, part), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(GpusimGreenContexts, AStreamOfItOrdersAndCopiesLikeAnyOther) {
  const CUgreenCtx context = make(4);
  const cudaStream_t stream = stream_of(context);
  float* memory = device_floats(1);
  float result = 0;
  const float value = 3;
  ASSERT_EQ(cudaMemcpyAsync(memory, &value, 4, cudaMemcpyHostToDevice, stream), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(&result, memory, 4, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(result, 3);
  int device = -1;
  EXPECT_EQ(cudaStreamGetDevice(stream, &device), cudaSuccess);
  EXPECT_EQ(device, 0);
  cudaStreamDestroy(stream);
  destroy(context);
  cudaFree(memory);
  EXPECT_EQ(gpusim::leak_report(), "");
  EXPECT_THAT(fault_kinds(), IsEmpty());
}

TEST_F(GpusimGreenContexts, AStreamWhoseContextIsGoneIsAFault) {
  const CUgreenCtx context = make(4);
  const cudaStream_t stream = stream_of(context);
  destroy(context);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
  EXPECT_THAT(fault_kinds(), ElementsAre(gpusim::FaultKind::kInvalidHandle));
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(GpusimGreenContexts, DestroyingOneWithWorkInFlightIsAFault) {
  const CUgreenCtx context = make(4);
  const cudaStream_t stream = stream_of(context);
  float* memory = device_floats(1);
  cudaMemsetAsync(memory, 0, 4, stream);
  destroy(context);
  EXPECT_THAT(fault_kinds(), Contains(gpusim::FaultKind::kFreeInUse));
}
