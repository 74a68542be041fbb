// The library that asks for the stream, as a delegate would.
#pragma once

#include <executorch/extension/cuda/caller_stream.h>

__attribute__((visibility("default"))) std::optional<cudaStream_t> observeStream();
