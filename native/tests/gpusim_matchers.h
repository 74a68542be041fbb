// What the gpusim tests share: a fresh simulator for each test, and a short way to ask for faults.
#pragma once

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gpusim/control.h>
#include <vector>

class GpusimTest : public testing::Test {
 protected:
  void SetUp() override { gpusim::reset(); }

  static std::vector<gpusim::FaultKind> fault_kinds() {
    std::vector<gpusim::FaultKind> kinds;
    for (const gpusim::Fault& fault : gpusim::faults()) kinds.push_back(fault.kind);
    return kinds;
  }

  static float* device_floats(size_t count) {
    void* pointer = nullptr;
    EXPECT_EQ(cudaMalloc(&pointer, count * sizeof(float)), cudaSuccess);
    return static_cast<float*>(pointer);
  }

  static cudaStream_t new_stream() {
    cudaStream_t stream = nullptr;
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    return stream;
  }

  static cudaEvent_t new_event() {
    cudaEvent_t event = nullptr;
    EXPECT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    return event;
  }
};
