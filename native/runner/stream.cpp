#include "stream.h"

#include <cstdio>

#include "problem.h"

namespace linkcheck::runner {
namespace {

void require_cuda(cudaError_t result, const char* what) {
  if (result != cudaSuccess) throw Problem(std::string(what) + ": " + cudaGetErrorName(result));
}

// For a destructor, which must not throw.
void log_failure(cudaError_t result, const char* what) {
  if (result != cudaSuccess) {
    std::fprintf(stderr, "executorch_runner: %s: %s\n", what, cudaGetErrorName(result));
  }
}

}  // namespace

void use_device(int device) {
  const std::string what = "GPU " + std::to_string(device) + " cannot be used";
  require_cuda(cudaSetDevice(device), what.c_str());
}

bool is_on_device(const void* memory) {
  cudaPointerAttributes attributes{};
  require_cuda(cudaPointerGetAttributes(&attributes, memory), "where memory is");
  return attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged;
}

Stream::Stream(unsigned int green_context_sms) {
  if (green_context_sms > 0) {
    green_context_.emplace(green_context_sms);
    stream_ = green_context_->create_stream();
  } else {
    require_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "no CUDA stream");
  }
}

Stream::~Stream() {
  log_failure(cudaStreamSynchronize(stream_), "waiting for the stream");
  log_failure(cudaStreamDestroy(stream_), "the stream could not be destroyed");
}

void Stream::synchronize() {
  require_cuda(cudaStreamSynchronize(stream_), "waiting for the stream");
}

std::string Stream::description() const {
  if (!green_context_) return "ordinary stream";
  return "green context with " + std::to_string(green_context_->sms()) + " SM(s)";
}

}  // namespace linkcheck::runner
