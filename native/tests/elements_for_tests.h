// One element of a tensor type, as bits, computed by the simulator's own store().
#pragma once

#include <NvInfer.h>

#include "elements.h"

template <typename T>
T stored(nvinfer1::DataType type, double value) {
  T bits{};
  gpusim::store(type, value, reinterpret_cast<unsigned char*>(&bits));
  return bits;
}
