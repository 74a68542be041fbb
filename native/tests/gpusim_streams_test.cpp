// Streams and events: nothing runs before something waits, the seed chooses the order, missing
// order is a fault.
#include <set>
#include <thread>

#include "gpusim_matchers.h"

using gpusim::FaultKind;
using testing::Contains;
using testing::IsEmpty;

using GpusimStreams = GpusimTest;

TEST_F(GpusimStreams, WorkRunsOnlyWhenSomethingWaits) {
  float* device = device_floats(1);
  const float one = 1.0F;
  float seen = -1.0F;
  cudaMemcpyAsync(device, &one, sizeof(one), cudaMemcpyHostToDevice, cudaStreamPerThread);
  cudaMemcpyAsync(&seen, device, sizeof(seen), cudaMemcpyDeviceToHost, cudaStreamPerThread);
  EXPECT_EQ(seen, -1.0F);
  ASSERT_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
  EXPECT_EQ(seen, 1.0F);
  cudaFree(device);
  EXPECT_THAT(gpusim::faults(), IsEmpty());
  EXPECT_EQ(gpusim::leak_report(), "");
}

TEST_F(GpusimStreams, SourceReusedTooEarlyShowsAsWrongData) {
  float* device = device_floats(1);
  float source = 1.0F;
  cudaMemcpyAsync(device, &source, sizeof(source), cudaMemcpyHostToDevice, cudaStreamPerThread);
  source = 2.0F;
  float seen = 0;
  cudaMemcpyAsync(&seen, device, sizeof(seen), cudaMemcpyDeviceToHost, cudaStreamPerThread);
  cudaStreamSynchronize(cudaStreamPerThread);
  EXPECT_EQ(seen, 2.0F);
  cudaFree(device);
}

TEST_F(GpusimStreams, TwoStreamsWithoutOrderAreAFaultAndTheSeedDecidesTheOutcome) {
  std::set<float> outcomes;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    gpusim::Settings settings;
    settings.seed = seed;
    gpusim::reset(settings);
    float* device = device_floats(1);
    const float values[] = {1.0F, 2.0F};
    const cudaStream_t streams[] = {new_stream(), new_stream()};
    for (size_t i = 0; i < 2; ++i) {
      cudaMemcpyAsync(device, &values[i], sizeof(float), cudaMemcpyHostToDevice, streams[i]);
    }
    cudaDeviceSynchronize();
    EXPECT_THAT(fault_kinds(), Contains(FaultKind::kUnorderedAccess));
    float seen = 0;
    cudaMemcpy(&seen, device, sizeof(seen), cudaMemcpyDeviceToHost);
    outcomes.insert(seen);
  }
  EXPECT_EQ(outcomes.size(), 2U) << "some seeds must run the second stream first";
}

TEST_F(GpusimStreams, AnEventOrdersTwoStreams) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    gpusim::Settings settings;
    settings.seed = seed;
    gpusim::reset(settings);
    float* device = device_floats(1);
    const float values[] = {1.0F, 2.0F};
    const cudaStream_t first = new_stream();
    const cudaStream_t second = new_stream();
    const cudaEvent_t event = new_event();
    cudaMemcpyAsync(device, &values[0], sizeof(float), cudaMemcpyHostToDevice, first);
    cudaEventRecord(event, first);
    cudaStreamWaitEvent(second, event, 0);
    cudaMemcpyAsync(device, &values[1], sizeof(float), cudaMemcpyHostToDevice, second);
    float seen = 0;
    cudaMemcpyAsync(&seen, device, sizeof(seen), cudaMemcpyDeviceToHost, second);
    cudaStreamSynchronize(second);
    EXPECT_EQ(seen, 2.0F);
    EXPECT_THAT(gpusim::faults(), IsEmpty());
  }
}

TEST_F(GpusimStreams, TheLegacyStreamOrdersBlockingStreamsOnly) {
  float* device = device_floats(1);
  const float one = 1.0F;
  cudaStream_t blocking = nullptr;
  cudaStreamCreate(&blocking);
  cudaMemcpyAsync(device, &one, sizeof(one), cudaMemcpyHostToDevice, blocking);
  cudaMemsetAsync(device, 0, sizeof(float), cudaStreamLegacy);
  EXPECT_THAT(gpusim::faults(), IsEmpty());
  cudaMemsetAsync(device, 0, sizeof(float), new_stream());
  EXPECT_THAT(fault_kinds(), Contains(FaultKind::kUnorderedAccess));
}

TEST_F(GpusimStreams, EachThreadHasItsOwnPerThreadStream) {
  float* device = device_floats(1);
  cudaMemsetAsync(device, 0, sizeof(float), cudaStreamPerThread);
  std::thread([device] { cudaMemsetAsync(device, 0, sizeof(float), cudaStreamPerThread); }).join();
  EXPECT_THAT(fault_kinds(), Contains(FaultKind::kUnorderedAccess));
}

TEST_F(GpusimStreams, ADestroyedStreamsWorkStillRunsButItsHandleIsGone) {
  float* device = device_floats(1);
  const float one = 1.0F;
  const cudaStream_t stream = new_stream();
  const cudaEvent_t event = new_event();
  cudaMemcpyAsync(device, &one, sizeof(one), cudaMemcpyHostToDevice, stream);
  cudaEventRecord(event, stream);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
  EXPECT_THAT(fault_kinds(), Contains(FaultKind::kInvalidHandle));
  float seen = 0;
  cudaMemcpy(&seen, device, sizeof(seen), cudaMemcpyDeviceToHost);
  EXPECT_EQ(seen, 1.0F);
}

TEST_F(GpusimStreams, AQueryThatSaysDoneCountsAsAWait) {
  float* device = device_floats(1);
  cudaMemsetAsync(device, 0, sizeof(float), cudaStreamPerThread);
  int polls = 0;
  while (cudaStreamQuery(cudaStreamPerThread) == cudaErrorNotReady && polls < 1000) ++polls;
  EXPECT_LT(polls, 1000);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
  EXPECT_THAT(gpusim::faults(), IsEmpty());
}

TEST_F(GpusimStreams, AnEventOfAnotherDeviceIsAFault) {
  gpusim::Settings settings;
  settings.devices = 2;
  gpusim::reset(settings);
  const cudaEvent_t event = new_event();
  cudaSetDevice(1);
  EXPECT_EQ(cudaEventRecord(event, new_stream()), cudaErrorInvalidResourceHandle);
  EXPECT_THAT(fault_kinds(), Contains(FaultKind::kWrongDevice));
  int device = -1;
  cudaStreamGetDevice(cudaStreamPerThread, &device);
  EXPECT_EQ(device, 1);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}
