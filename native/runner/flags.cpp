#include "flags.h"

#include <charconv>
#include <limits>
#include <string_view>

namespace linkcheck::runner {
namespace {

// The whole of `text` as a number between 0 and `maximum`.
template <typename T>
bool parse_number(std::string_view text, T maximum, T& number) {
  T parsed = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, parsed);
  if (error != std::errc() || stop != end || parsed < 0 || parsed > maximum) return false;
  number = parsed;
  return true;
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const size_t comma = text.find(',');
    parts.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

enum class Applied { kYes, kUnknownName, kBadValue };

Applied apply(std::string_view name, std::string_view value, Flags& flags) {
  const auto when = [](bool good) { return good ? Applied::kYes : Applied::kBadValue; };
  if (name == "--model_path") {
    flags.model_path = value;
    return when(!value.empty());
  }
  if (name == "--method") {
    flags.method = value;
    return when(!value.empty());
  }
  if (name == "--inputs") {
    flags.inputs = split(value);
    return when(!value.empty());
  }
  constexpr int kMaximum = std::numeric_limits<int>::max();
  if (name == "--num_runs") {
    return when(parse_number(value, kMaximum, flags.num_runs) && flags.num_runs > 0);
  }
  if (name == "--green_context_sms") {
    constexpr unsigned int kMost = std::numeric_limits<int>::max();
    return when(parse_number(value, kMost, flags.green_context_sms));
  }
  if (name == "--device_io") {
    flags.device_io = value != "false";
    return when(value.empty() || value == "true" || value == "false");
  }
  if (name == "--seed") {
    uint64_t seed = 0;
    if (!parse_number(value, std::numeric_limits<uint64_t>::max(), seed)) return Applied::kBadValue;
    flags.seed = seed;
    return Applied::kYes;
  }
  return Applied::kUnknownName;
}

}  // namespace

const char kUsage[] =
    "usage: executorch_runner --model_path=FILE.pte [--num_runs=N] [--method=NAME]\n"
    "                         [--inputs=FILE[,FILE...]] [--seed=N] [--green_context_sms=N]\n"
    "                         [--device_io]\n"
    "Runs one method of an ExecuTorch program on a stream of its own and prints its outputs.\n"
    "Inputs are all ones, or random with --seed, or the raw element bytes of one file each.\n"
    "With --green_context_sms the stream is one of a green context with so many of the GPU's "
    "SMs.\n"
    "With --device_io inputs are in device memory before the first run, and outputs must be, so "
    "that no run waits.\n";

std::variant<Flags, std::string> parse_flags(const std::vector<std::string>& arguments) {
  Flags flags;
  for (const std::string& argument : arguments) {
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : argument.substr(equals + 1);
    switch (apply(name, value, flags)) {
      case Applied::kYes:
        break;
      case Applied::kUnknownName:
        return "unknown flag " + name;
      case Applied::kBadValue:
        return "flag " + name + " does not take the value \"" + value + "\"";
    }
  }
  return flags;
}

}  // namespace linkcheck::runner
