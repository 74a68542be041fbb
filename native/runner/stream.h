// A CUDA stream of the runner's own, on all of the current GPU or on a part of its multiprocessors.
#pragma once

#include <cuda_runtime_api.h>

#include <optional>
#include <string>

#include "green_context.h"

namespace linkcheck::runner {

// Makes a GPU current for the calling thread. Throws Problem.
void use_device(int device);

// Whether a GPU owns the memory. Throws Problem.
bool is_on_device(const void* memory);

class Stream {
 public:
  // `green_context_sms` multiprocessors, or more when the driver rounds up; 0: an ordinary stream.
  // Throws Problem.
  explicit Stream(unsigned int green_context_sms);
  // Waits for the stream's work: a green context must not go before.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  cudaStream_t get() const { return stream_; }
  void synchronize();  // throws Problem
  // Multiprocessors of the green context; 0 for an ordinary stream.
  unsigned int sms() const { return green_context_ ? green_context_->sms() : 0; }
  // "ordinary stream", or "green context with 8 SM(s)".
  std::string description() const;

 private:
  std::optional<GreenContext> green_context_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace linkcheck::runner
