// Single elements of every ExecuTorch scalar type that the runner fills and prints.
#pragma once

#include <executorch/runtime/core/exec_aten/exec_aten.h>

#include <cstdint>
#include <optional>
#include <random>
#include <string>

namespace linkcheck::runner {

// Bytes of one element; nothing for a type the runner does not know.
std::optional<size_t> element_size(executorch::aten::ScalarType type);

// Writes one element: 1, or with `random` a number in [0, 1) for floating types, 0 to 9 for
// integers, 0 or 1 for booleans.
void fill_element(executorch::aten::ScalarType type, std::mt19937_64* random, unsigned char* to);

// One element as text: four decimals for floating types.
std::string format_element(executorch::aten::ScalarType type, const unsigned char* from);

}  // namespace linkcheck::runner
