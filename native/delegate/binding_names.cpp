#include "binding_names.h"

#include <charconv>
#include <string>

namespace linkcheck::trt {
namespace {

// Places the inputs, or the outputs, of `found`. Positions beyond the number of tensors would leave
// a gap.
Status place(const std::vector<BlobBinding>& found, bool inputs,
             std::vector<BlobBinding>& ordered) {
  size_t count = 0;
  for (const BlobBinding& binding : found) count += binding.is_input == inputs ? 1 : 0;
  std::vector<const BlobBinding*> places(count, nullptr);
  for (const BlobBinding& binding : found) {
    if (binding.is_input != inputs) continue;
    const auto position = parse_position(binding.name);
    if (!position) {
      return Failure{Error::InvalidProgram,
                     "tensor " + binding.name + " does not end in its position (name_0, name.0)"};
    }
    if (*position >= count) {
      return Failure{Error::InvalidProgram, "tensor " + binding.name + " leaves a gap: there are " +
                                                std::to_string(count) +
                                                (inputs ? " inputs" : " outputs")};
    }
    if (places[*position] != nullptr) {
      return Failure{Error::InvalidProgram, "tensors " + places[*position]->name + " and " +
                                                binding.name + " have one position"};
    }
    places[*position] = &binding;
  }
  for (const BlobBinding* binding : places) ordered.push_back(*binding);
  return {};
}

}  // namespace

std::optional<uint32_t> parse_position(std::string_view name) {
  const size_t separator = name.find_last_of("._");
  if (separator == std::string_view::npos || separator + 1 == name.size()) return std::nullopt;
  const std::string_view digits = name.substr(separator + 1);
  if (digits.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  uint32_t position = 0;
  const auto end = digits.data() + digits.size();
  const auto [parsed, error] = std::from_chars(digits.data(), end, position);
  if (error != std::errc() || parsed != end) return std::nullopt;
  return position;
}

Outcome<std::vector<BlobBinding>> infer_bindings(const std::vector<BlobBinding>& found) {
  std::vector<BlobBinding> ordered;
  for (const bool inputs : {true, false}) {
    Status status = place(found, inputs, ordered);
    if (!status.ok()) return std::move(status.failure());
  }
  return ordered;
}

}  // namespace linkcheck::trt
