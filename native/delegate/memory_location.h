// Where the memory behind a pointer is, seen from one GPU. It asks CUDA and copies nothing.
#pragma once

#include <string>

#include "device_traits.h"
#include "driver_api.h"
#include "failure.h"

namespace linkcheck::trt {

enum class MemoryLocation {
  kHost,    // must be copied to the GPU
  kShared,  // the GPU reads it in place, and so may the host: results must be complete on return
  kDevice   // the GPU's own, or managed
};

// Fails with InvalidArgument, naming both devices, when the memory belongs to another GPU.
Outcome<MemoryLocation> locate(const void* pointer, const DeviceTraits& traits,
                               const DriverApi& driver);

}  // namespace linkcheck::trt
