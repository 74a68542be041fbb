// Reads the simulator's engine file. make_plan.py, beside this folder, writes it and documents the
// format; it is no TensorRT plan and TensorRT cannot read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "NvInfer.h"

namespace gpusim {

struct PlanTensor {
  std::string name;
  bool is_input = false;
  nvinfer1::DataType type = nvinfer1::DataType::kFLOAT;
  nvinfer1::TensorFormat format = nvinfer1::TensorFormat::kLINEAR;
  bool shape_io = false;
  std::string aliased_input;  // of an output; empty if it has memory of its own
  nvinfer1::Dims shape{};     // -1 where it is dynamic
  nvinfer1::Dims minimum{};   // of an input
  nvinfer1::Dims optimum{};
  nvinfer1::Dims maximum{};
};

enum class Opcode : uint8_t {
  kCopy = 0,
  kAdd = 1,
  kAddScalar = 2,
  kMultiply = 3,
  kMultiplyScalar = 4
};

struct PlanOperation {
  Opcode opcode = Opcode::kCopy;
  uint32_t a = 0;       // index of the first operand
  uint32_t b = 0;       // index of the second operand; equal to a where there is none
  uint32_t result = 0;  // index of an output
  double scalar = 0;
};

struct Plan {
  std::vector<PlanTensor> tensors;
  std::vector<PlanOperation> operations;
  int64_t streamable_weights = 0;
};

// Nothing if the bytes are not a whole, consistent plan.
std::optional<Plan> read_plan(const void* data, size_t size);

// The shape of the tensor at `index`, where `given` has the shapes that the inputs were set to
// (nbDims < 0: none yet). An output has its own dimensions, and for a dynamic one that of the first
// operand of what writes it.
nvinfer1::Dims find_shape(const Plan& plan, const std::vector<nvinfer1::Dims>& given, size_t index);

}  // namespace gpusim
