// The library that chooses a stream, as a runner's helper would.
#pragma once

#include <executorch/extension/cuda/caller_stream.h>

/// Calls `body` with `stream` chosen, and answers what it sees itself afterwards, still under its
/// guard.
__attribute__((visibility("default"))) std::optional<cudaStream_t> withChosenStream(
    cudaStream_t stream, void (*body)());
