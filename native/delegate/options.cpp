#include "options.h"

#include <executorch/runtime/platform/log.h>

#include <array>
#include <charconv>
#include <cstring>
#include <string>

namespace linkcheck::trt {
namespace {

using executorch::runtime::ArrayRef;
using executorch::runtime::BackendOption;
using executorch::runtime::CompileSpec;
using executorch::runtime::kMaxOptionValueLength;
using executorch::runtime::OptionValue;
using executorch::runtime::Span;

constexpr char kBudgetKey[] = "weight_streaming_budget";
constexpr char kAsyncReturnKey[] = "async_return";
constexpr char kMaxContextsKey[] = "max_contexts";
constexpr char kOnExhaustedKey[] = "on_exhausted";
constexpr int kMostContexts = 1024;

Failure invalid(const char* key, const std::string& what) {
  return {Error::InvalidProgram, std::string(key) + " " + what};
}

const OptionValue* find_option(Span<const BackendOption> options, std::string_view key) {
  for (const BackendOption& option : options) {
    if (std::string_view(option.key, strnlen(option.key, sizeof(option.key))) == key) {
      return &option.value;
    }
  }
  return nullptr;
}

std::string_view text_of(const std::array<char, kMaxOptionValueLength>& characters) {
  return {characters.data(), strnlen(characters.data(), characters.size())};
}

Status read_max_contexts(const OptionValue* value, size_t& contexts) {
  if (value == nullptr) return {};
  const int* number = std::get_if<int>(value);
  if (number == nullptr || *number < 1 || *number > kMostContexts) {
    return invalid(kMaxContextsKey, "is no number from 1 to " + std::to_string(kMostContexts));
  }
  contexts = static_cast<size_t>(*number);
  return {};
}

Status read_on_exhausted(const OptionValue* value, bool& waits) {
  if (value == nullptr) return {};
  const auto* characters = std::get_if<std::array<char, kMaxOptionValueLength>>(value);
  const std::string_view text = characters == nullptr ? "" : text_of(*characters);
  if (text != "wait" && text != "error") {
    return invalid(kOnExhaustedKey, "is neither \"wait\" nor \"error\"");
  }
  waits = text == "wait";
  return {};
}

// Nothing when the option is absent, or empty: an empty text is how a caller with a fixed set of
// options leaves one out.
Outcome<std::optional<int64_t>> read_load_time_budget(const OptionValue* value) {
  using Budget = std::optional<int64_t>;
  if (value == nullptr) return Budget{};
  if (std::holds_alternative<bool>(*value)) return invalid(kBudgetKey, "is a truth value");
  if (const int* number = std::get_if<int>(value)) {
    if (*number < 0) return invalid(kBudgetKey, "is negative");
    return Budget{*number};
  }
  const auto text = text_of(std::get<std::array<char, kMaxOptionValueLength>>(*value));
  if (text.empty()) {
    ET_LOG(Error, "TensorRTBackend::init: load-time option %s is empty and ignored", kBudgetKey);
    return Budget{};
  }
  const auto budget = parse_budget(text);
  if (!budget) return invalid(kBudgetKey, "is not a number of bytes: " + std::string(text));
  return Budget{budget};
}

Outcome<std::optional<int64_t>> read_compiled_budget(ArrayRef<CompileSpec> specs) {
  std::optional<int64_t> budget;
  for (const CompileSpec& spec : specs) {
    if (spec.key == nullptr || std::strcmp(spec.key, kBudgetKey) != 0) continue;
    if (budget) return invalid(kBudgetKey, "is given twice in the compile specs");
    const std::string_view text(static_cast<const char*>(spec.value.buffer),
                                spec.value.buffer == nullptr ? 0 : spec.value.nbytes);
    budget = parse_budget(text);
    if (!budget) return invalid(kBudgetKey, "in the compile specs is not a number of bytes");
  }
  return budget;
}

}  // namespace

std::optional<int64_t> parse_budget(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  int64_t budget = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), budget);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return budget;
}

Outcome<Options> read_options(Span<const BackendOption> load_time,
                              ArrayRef<CompileSpec> compile_specs) {
  Options options;
  auto budget = read_load_time_budget(find_option(load_time, kBudgetKey));
  if (budget.ok() && !budget.value()) budget = read_compiled_budget(compile_specs);
  if (!budget.ok()) return std::move(budget.failure());
  options.weight_streaming_budget = budget.value();
  if (const OptionValue* value = find_option(load_time, kAsyncReturnKey)) {
    const bool* flag = std::get_if<bool>(value);
    if (flag == nullptr) return invalid(kAsyncReturnKey, "is neither true nor false");
    options.async_return = *flag;
  }
  Status status = read_max_contexts(find_option(load_time, kMaxContextsKey), options.max_contexts);
  if (status.ok()) {
    status = read_on_exhausted(find_option(load_time, kOnExhaustedKey), options.waits_for_context);
  }
  if (!status.ok()) return std::move(status.failure());
  return options;
}

}  // namespace linkcheck::trt
