#include "stream.h"

#include <string>

#include "problem.h"

namespace linkcheck::runner {
namespace {

void require_cuda(cudaError_t result, const char* what) {
  if (result != cudaSuccess) throw Problem(std::string(what) + ": " + cudaGetErrorName(result));
}

}  // namespace

Stream::Stream() {
  require_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "no CUDA stream");
}

Stream::~Stream() { cudaStreamDestroy(stream_); }

void Stream::synchronize() {
  require_cuda(cudaStreamSynchronize(stream_), "waiting for the stream");
}

}  // namespace linkcheck::runner
