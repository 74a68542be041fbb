// Memory: kinds and addresses, poison, and every way to use what is not there.
#include <cstring>

#include "gpusim_matchers.h"

using gpusim::FaultKind;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

using GpusimMemory = GpusimTest;
using GpusimMemoryDeathTest = GpusimTest;

TEST_F(GpusimMemory, PointersTellWhatTheyAre) {
  void* device = nullptr;
  void* pinned = nullptr;
  void* managed = nullptr;
  int host = 0;
  cudaMalloc(&device, 16);
  cudaMallocHost(&pinned, 16);
  cudaMallocManaged(&managed, 16, cudaMemAttachGlobal);
  const auto type_of = [](const void* pointer) {
    cudaPointerAttributes attributes{};
    EXPECT_EQ(cudaPointerGetAttributes(&attributes, pointer), cudaSuccess);
    return attributes.type;
  };
  EXPECT_EQ(type_of(static_cast<char*>(device) + 15), cudaMemoryTypeDevice);
  EXPECT_EQ(type_of(pinned), cudaMemoryTypeHost);
  EXPECT_EQ(type_of(managed), cudaMemoryTypeManaged);
  EXPECT_EQ(type_of(&host), cudaMemoryTypeUnregistered);
  EXPECT_EQ(type_of(nullptr), cudaMemoryTypeUnregistered);
}

TEST_F(GpusimMemory, NewMemoryIsPoisoned) {
  EXPECT_THAT(gpusim::peek(device_floats(4), 16), Each(gpusim::kFreshByte));
}

TEST_F(GpusimMemoryDeathTest, TheHostCannotReachDeviceMemory) {
  volatile float* device = device_floats(1);
  EXPECT_DEATH(*device = 1.0F, "");
}

TEST_F(GpusimMemory, CopyFromFreedMemoryIsAFaultAndReadsPoison) {
  float* device = device_floats(1);
  cudaFree(device);
  unsigned char seen[4] = {};
  cudaMemcpy(seen, device, sizeof(seen), cudaMemcpyDeviceToHost);
  EXPECT_THAT(fault_kinds(), Contains(FaultKind::kUseAfterFree));
  EXPECT_THAT(seen, Each(gpusim::kFreedByte));
}

TEST_F(GpusimMemory, FreeingMemoryThatWorkStillUsesIsAFault) {
  float* device = device_floats(1);
  cudaMemsetAsync(device, 0, sizeof(float), cudaStreamPerThread);
  cudaFree(device);
  EXPECT_THAT(fault_kinds(), Contains(FaultKind::kFreeInUse));
}

TEST_F(GpusimMemory, WorkThatHappensToBeDoneWasStillNotWaitedFor) {
  float* device = device_floats(1);
  cudaMemsetAsync(device, 0, sizeof(float), cudaStreamPerThread);
  gpusim::run_all();
  cudaFree(device);
  EXPECT_THAT(fault_kinds(), Contains(FaultKind::kFreeInUse));
}

TEST_F(GpusimMemory, FreeingPinnedMemoryInUseIsAFault) {
  void* pinned = nullptr;
  cudaMallocHost(&pinned, 4);
  cudaMemcpyAsync(device_floats(1), pinned, 4, cudaMemcpyHostToDevice, cudaStreamPerThread);
  cudaFreeHost(pinned);
  EXPECT_THAT(fault_kinds(), Contains(FaultKind::kFreeInUse));
}

TEST_F(GpusimMemory, AStepPastTheEndIsAFault) {
  float* device = device_floats(2);
  cudaMemsetAsync(device + 1, 0, 8, cudaStreamPerThread);
  EXPECT_THAT(fault_kinds(), ElementsAre(FaultKind::kOutOfBounds));
}

TEST_F(GpusimMemory, FreeingTwiceOrElsewhereIsAFault) {
  float* device = device_floats(2);
  EXPECT_EQ(cudaFree(device + 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeHost(device), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
  EXPECT_EQ(cudaFree(device), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  EXPECT_THAT(fault_kinds(), Each(FaultKind::kInvalidHandle));
}

TEST_F(GpusimMemory, StreamOrderedMemoryIsOrderedByItsStream) {
  const cudaStream_t stream = new_stream();
  void* memory = nullptr;
  ASSERT_EQ(cudaMallocAsync(&memory, 4, stream), cudaSuccess);
  cudaMemsetAsync(memory, 0, 4, stream);
  ASSERT_EQ(cudaFreeAsync(memory, stream), cudaSuccess);
  EXPECT_THAT(gpusim::faults(), IsEmpty());
  EXPECT_EQ(gpusim::live().device_allocations, 1U) << "freed only once the stream gets there";
  cudaStreamSynchronize(stream);
  EXPECT_EQ(gpusim::live().device_allocations, 0U);
}

TEST_F(GpusimMemory, StreamOrderedMemoryUsedElsewhereIsAFault) {
  void* memory = nullptr;
  cudaMallocAsync(&memory, 4, new_stream());
  cudaMemsetAsync(memory, 0, 4, new_stream());
  EXPECT_THAT(fault_kinds(), Contains(FaultKind::kUnorderedAccess));
}

TEST_F(GpusimMemory, UseAfterStreamOrderedFreeIsAFault) {
  const cudaStream_t stream = new_stream();
  void* memory = nullptr;
  cudaMallocAsync(&memory, 4, stream);
  cudaFreeAsync(memory, stream);
  cudaMemsetAsync(memory, 0, 4, stream);
  EXPECT_THAT(fault_kinds(), Contains(FaultKind::kUseAfterFree));
}

TEST_F(GpusimMemory, AFullDeviceSaysSo) {
  gpusim::Settings settings;
  settings.memory_bytes = 100;
  gpusim::reset(settings);
  void* first = nullptr;
  void* second = nullptr;
  EXPECT_EQ(cudaMalloc(&first, 60), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&second, 60), cudaErrorMemoryAllocation);
  cudaFree(first);
  EXPECT_EQ(cudaMalloc(&second, 60), cudaSuccess);
}

TEST_F(GpusimMemory, ACopyInTheWrongDirectionIsAnError) {
  int host = 0;
  float* device = device_floats(1);
  EXPECT_EQ(cudaMemcpy(device, &host, 4, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(device, &host, 4, cudaMemcpyDefault), cudaSuccess);
}

TEST_F(GpusimMemory, LeaksAreReported) {
  device_floats(1);
  new_stream();
  new_event();
  void* pinned = nullptr;
  cudaMallocHost(&pinned, 1);
  EXPECT_EQ(gpusim::leak_report(),
            "1 device allocations left\n1 host allocations left\n1 streams left\n1 events left\n");
}
