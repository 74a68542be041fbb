// The delegate's only entry point, by a C name so that dlsym finds it.
#pragma once

#include "caller_stream.h"

// The stream the delegate would enqueue its work on.
extern "C" __attribute__((visibility("default"))) cudaStream_t demo_delegate_stream();
