// What the delegate needs to know of a GPU, read once when an engine is loaded.
#pragma once

namespace linkcheck::trt {

struct DeviceTraits {
  int device = 0;
  // The GPU shares the host's memory and may read any of it in place: host tensors need no copy.
  bool reads_host_memory = false;
  // cudaMallocAsync works: staging grows without stopping the device.
  bool memory_pools = false;
};

// A property that CUDA does not tell counts as absent: that is slower, never wrong.
DeviceTraits read_device_traits(int device);

}  // namespace linkcheck::trt
