// What an engine takes and gives, in the order of the delegate's arguments. Pure: it joins the
// blob's names with the engine's tensors and refuses what does not agree; it never calls TensorRT.
#pragma once

#include <executorch/runtime/core/exec_aten/exec_aten.h>

#include <optional>
#include <string>
#include <vector>

#include "blob.h"
#include "failure.h"
#include "shape.h"

namespace linkcheck::trt {

// One input or output of an engine, as the engine describes it.
struct TensorDescription {
  std::string name;
  bool is_input = false;
  executorch::aten::ScalarType dtype = executorch::aten::ScalarType::Undefined;
  size_t element_size = 0;
  Shape shape;    // -1 where dynamic
  Shape minimum;  // of an input, profile 0
  Shape maximum;  // of an input, profile 0
  std::string
      aliased_input;  // of an output that the engine writes into an input's memory; else empty
};

struct Signature {
  std::vector<TensorDescription> inputs;
  std::vector<TensorDescription> outputs;
  // For each output the input whose memory it is, if any; no input is given twice.
  std::vector<std::optional<size_t>> aliased_inputs;
  // For each input whether an output is written into its memory.
  std::vector<bool> is_written;
};

// Fails with InvalidProgram when the blob and the engine disagree about names, directions or
// aliases.
Outcome<Signature> resolve_signature(const std::vector<BlobBinding>& bindings,
                                     const std::vector<BlobAlias>& aliases,
                                     const std::vector<TensorDescription>& tensors);

}  // namespace linkcheck::trt
