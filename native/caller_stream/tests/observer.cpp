#include "observer.h"

std::optional<cudaStream_t> observeStream() {
  return executorch::extension::cuda::getCallerStream();
}
