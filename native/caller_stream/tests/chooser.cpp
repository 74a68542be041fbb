#include "chooser.h"

std::optional<cudaStream_t> withChosenStream(cudaStream_t stream, void (*body)()) {
  const executorch::extension::cuda::CallerStreamGuard guard{stream};
  body();
  return executorch::extension::cuda::getCallerStream();
}
