// What an owner may choose for one loaded engine, from compile specs (fixed at export) and
// load-time options (which win). Pure: it applies nothing.
#pragma once

#include <executorch/runtime/backend/interface.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "failure.h"

namespace linkcheck::trt {

struct Options {
  std::optional<int64_t> weight_streaming_budget;  // bytes; nothing: TensorRT chooses
  // execute may return with work in flight when the caller chose a stream.
  bool async_return = true;
  // How many executes of the engine may run side by side; each needs a context and its memory.
  size_t max_contexts = 4;
  // What an execute does when all of them are in use: wait its turn, or fail.
  bool waits_for_context = true;
};

// A budget as text: decimal digits only, 0 to 2^63-1. Leading zeros are allowed; signs, spaces and
// zero bytes are not.
std::optional<int64_t> parse_budget(std::string_view text);

// Fails with InvalidProgram on a value that is not allowed; keys of others are ignored.
Outcome<Options> read_options(
    executorch::runtime::Span<const executorch::runtime::BackendOption> load_time,
    executorch::runtime::ArrayRef<executorch::runtime::CompileSpec> compile_specs);

}  // namespace linkcheck::trt
