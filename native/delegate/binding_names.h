// The order of an engine's tensors, read from their names: used only when the blob lists no
// bindings. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "blob.h"
#include "failure.h"

namespace linkcheck::trt {

// The number after the last '.' or '_' of a name: "input_12" is 12. Nothing if the rest is not all
// decimal digits.
std::optional<uint32_t> parse_position(std::string_view name);

// Puts `found` (an engine's tensors in any order) into argument order: inputs 0..n-1, then outputs
// 0..m-1. Fails with InvalidProgram on a name without a number, a number twice, or a gap.
Outcome<std::vector<BlobBinding>> infer_bindings(const std::vector<BlobBinding>& found);

}  // namespace linkcheck::trt
