// The one thread_local behind getCallerStream() and CallerStreamGuard. Compile it into one shared
// library of a process and into nothing else: every further copy is a second choice that the others
// do not see.
#include <executorch/extension/cuda/caller_stream.h>

#include <utility>

namespace executorch::extension::cuda {
namespace {

thread_local std::optional<cudaStream_t> chosen{};

}  // namespace

std::optional<cudaStream_t> getCallerStream() { return chosen; }

CallerStreamGuard::CallerStreamGuard(cudaStream_t stream)
    : previous_{std::exchange(chosen, std::optional<cudaStream_t>{stream})} {}

CallerStreamGuard::~CallerStreamGuard() { chosen = previous_; }

}  // namespace executorch::extension::cuda
