#include "signature.h"

#include <algorithm>
#include <utility>

#include "binding_names.h"

namespace linkcheck::trt {
namespace {

Failure invalid(std::string message) { return {Error::InvalidProgram, std::move(message)}; }

const TensorDescription* find(const std::vector<TensorDescription>& tensors,
                              const std::string& name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const auto& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

std::optional<size_t> index_of(const std::vector<TensorDescription>& tensors,
                               const std::string& name) {
  const TensorDescription* found = find(tensors, name);
  if (found == nullptr) return std::nullopt;
  return static_cast<size_t>(found - tensors.data());
}

// Every binding is a tensor of the engine, with the same direction, and no tensor is left over.
Status place_tensors(const std::vector<BlobBinding>& bindings,
                     const std::vector<TensorDescription>& tensors, Signature& signature) {
  for (const BlobBinding& binding : bindings) {
    const TensorDescription* tensor = find(tensors, binding.name);
    if (tensor == nullptr) return invalid("the engine has no tensor " + binding.name);
    if (tensor->is_input != binding.is_input) {
      return invalid("the engine says that " + binding.name + " is an " +
                     (tensor->is_input ? "input" : "output") + ", the blob the opposite");
    }
    (binding.is_input ? signature.inputs : signature.outputs).push_back(*tensor);
  }
  for (const TensorDescription& tensor : tensors) {
    const auto bound = std::any_of(bindings.begin(), bindings.end(), [&](const auto& binding) {
      return binding.name == tensor.name;
    });
    if (!bound) return invalid("the blob does not bind the engine's tensor " + tensor.name);
  }
  return {};
}

Status add_alias(const std::string& output, const std::string& input, Signature& signature) {
  const auto output_index = index_of(signature.outputs, output);
  const auto input_index = index_of(signature.inputs, input);
  if (!output_index) return invalid("alias of " + output + ": no such output");
  if (!input_index) return invalid("alias of " + output + ": no input " + input);
  auto& aliased = signature.aliased_inputs[*output_index];
  if (aliased == input_index) return {};
  if (aliased) return invalid("output " + output + " is an alias of two inputs");
  if (signature.is_written[*input_index]) return invalid("two outputs are aliases of " + input);
  aliased = input_index;
  signature.is_written[*input_index] = true;
  return {};
}

Status check_alias(const BlobAlias& alias, const Signature& signature) {
  const TensorDescription* output = find(signature.outputs, alias.output);
  const TensorDescription* input = find(signature.inputs, alias.input);
  if (output == nullptr || input == nullptr) return {};  // add_alias says which
  if (alias.kind == AliasKind::kKvCacheUpdate) {
    if (output->aliased_input != alias.input) {
      return invalid("the blob says that " + alias.output + " updates " + alias.input +
                     ", the engine does not");
    }
  } else if (output->dtype != input->dtype || output->shape != input->shape) {
    return invalid("alias of " + alias.output + ": " + alias.input + " has another type or shape");
  }
  return {};
}

Status place_aliases(const std::vector<BlobAlias>& aliases, Signature& signature) {
  signature.aliased_inputs.assign(signature.outputs.size(), std::nullopt);
  signature.is_written.assign(signature.inputs.size(), false);
  for (const BlobAlias& alias : aliases) {
    Status status = check_alias(alias, signature);
    if (status.ok()) status = add_alias(alias.output, alias.input, signature);
    if (!status.ok()) return status;
  }
  // The engine writes there whether or not the blob says so.
  for (const TensorDescription& output : signature.outputs) {
    if (output.aliased_input.empty()) continue;
    Status status = add_alias(output.name, output.aliased_input, signature);
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace

Outcome<Signature> resolve_signature(const std::vector<BlobBinding>& bindings,
                                     const std::vector<BlobAlias>& aliases,
                                     const std::vector<TensorDescription>& tensors) {
  std::vector<BlobBinding> ordered = bindings;
  if (ordered.empty()) {
    std::vector<BlobBinding> found;
    for (const TensorDescription& tensor : tensors) found.push_back({tensor.name, tensor.is_input});
    auto inferred = infer_bindings(found);
    if (!inferred.ok()) return std::move(inferred.failure());
    ordered = std::move(inferred.value());
  }
  Signature signature;
  Status status = place_tensors(ordered, tensors, signature);
  if (status.ok()) status = place_aliases(aliases, signature);
  if (!status.ok()) return std::move(status.failure());
  return signature;
}

}  // namespace linkcheck::trt
