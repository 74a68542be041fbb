// The runner's lines about tensors. Their form is a contract: scripts match them.
#pragma once

#include <executorch/runtime/core/evalue.h>

#include <cstddef>

namespace linkcheck::runner {

void print_input(size_t index, const executorch::aten::Tensor& tensor);

// Copies device memory back first. Throws Problem if that fails.
void print_output(size_t index, const executorch::runtime::EValue& value);

}  // namespace linkcheck::runner
