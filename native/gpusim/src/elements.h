// Arithmetic on single elements of every tensor type the simulator knows. Half and bfloat16 round
// to nearest even.
#pragma once

#include <cstddef>

#include "NvInfer.h"

namespace gpusim {

// Bytes of one element; 0 for a type that the simulator does not compute with.
size_t element_size(nvinfer1::DataType type);

enum class Arithmetic { kAdd, kMultiply };

// result = a op b, all of `type`. Integers wrap; on booleans, add is "or" and multiply is "and".
void compute(nvinfer1::DataType type, Arithmetic arithmetic, const unsigned char* a,
             const unsigned char* b, unsigned char* result);

// Writes `value` as one element of `type`.
void store(nvinfer1::DataType type, double value, unsigned char* result);

}  // namespace gpusim
