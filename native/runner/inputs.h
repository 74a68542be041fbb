// Makes a method's inputs, from files or made up, and hands them to it.
#pragma once

#include <executorch/extension/tensor/tensor_ptr.h>
#include <executorch/runtime/core/device_memory_buffer.h>
#include <executorch/runtime/executor/method.h>

#include <vector>

#include "flags.h"

namespace linkcheck::runner {

class Inputs {
 public:
  // With --device_io in the memory of `device`. Throws Problem on a file that does not fit, and on
  // an input the runner cannot make.
  Inputs(const executorch::runtime::MethodMeta& meta, const Flags& flags, int device);

  // Prints one line an input, as "  input[0] shape=[2,3] numel=6".
  void print() const;
  // Gives the inputs to the method; they must outlive its runs.
  void set(executorch::runtime::Method& method) const;

 private:
  std::vector<std::vector<unsigned char>> bytes_;
  std::vector<executorch::runtime::DeviceMemoryBuffer> on_device_;
  std::vector<executorch::extension::TensorPtr> tensors_;
  std::vector<executorch::runtime::EValue> values_;
};

}  // namespace linkcheck::runner
