// Failing on demand: the nth call of one name, or of all.
#include "gpusim_matchers.h"

using testing::ElementsAre;

using GpusimFailures = GpusimTest;

TEST_F(GpusimFailures, TheNthCallOfOneNameFailsOnce) {
  gpusim::fail_call("cudaMalloc", 2, cudaErrorMemoryAllocation);
  void* pointers[3] = {};
  EXPECT_EQ(cudaMalloc(&pointers[0], 1), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&pointers[1], 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMalloc(&pointers[2], 1), cudaSuccess);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
}

TEST_F(GpusimFailures, TheNthCallOfAllFails) {
  gpusim::fail_call("*", 2);
  int device = 0;
  EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
  EXPECT_EQ(cudaSetDevice(0), cudaErrorUnknown);
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
}

TEST_F(GpusimFailures, CallsAreLoggedInOrder) {
  int device = 0;
  cudaGetDevice(&device);
  cudaSetDevice(0);
  cudaGetLastError();
  EXPECT_THAT(gpusim::calls(), ElementsAre("cudaGetDevice", "cudaSetDevice"));
}
