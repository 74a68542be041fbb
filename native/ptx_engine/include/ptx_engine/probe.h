// What a test on a real GPU asks of the stand-in for TensorRT: which multiprocessors its kernels
// ran on, and a kernel that takes as long as it is told to. Nothing of TensorRT has these.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <set>

#define PTX_ENGINE_API __attribute__((visibility("default")))

namespace ptx_engine {

// Numbers of the multiprocessors that ran a block of an engine's kernel since the last call, on the
// current GPU. The GPU must be idle.
PTX_ENGINE_API std::set<int> take_multiprocessors_used();

// Keeps `stream` busy with one thread for so long. False if it could not be launched.
PTX_ENGINE_API bool spin(cudaStream_t stream, uint64_t nanoseconds);

}  // namespace ptx_engine
