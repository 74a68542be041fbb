// Selects a stream, asks the delegate which one it sees, and ends with 0 when both agree, 3 when not.
#include "runner.h"

#include <cinttypes>
#include <cstdint>
#include <cstdio>

namespace cuda = executorch::extension::cuda;

namespace {
std::uintptr_t number(cudaStream_t stream) {
  return reinterpret_cast<std::uintptr_t>(stream);
}
} // namespace

int main(int argc, char** argv) {
  const DelegateStream delegate_stream = find_delegate(argc, argv);
  // No stream is made: the handle is only compared, and never given to CUDA.
  const cuda::CallerStreamGuard guard(reinterpret_cast<cudaStream_t>(std::uintptr_t{0x5eed}));
  const std::uintptr_t selected = number(cuda::getCallerStream().value_or(nullptr));
  const std::uintptr_t observed = number(delegate_stream());
  std::printf("runner selected stream 0x%" PRIxPTR "\n", selected);
  std::printf("delegate observed 0x%" PRIxPTR "\n", observed);
  return observed == selected ? 0 : 3;
}
