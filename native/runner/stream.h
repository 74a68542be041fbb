// A CUDA stream of the runner's own.
#pragma once

#include <cuda_runtime_api.h>

namespace linkcheck::runner {

class Stream {
 public:
  // Throws Problem.
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  cudaStream_t get() const { return stream_; }
  void synchronize();  // throws Problem

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace linkcheck::runner
