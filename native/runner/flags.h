// The runner's command line: --name=value only. Unknown names and malformed values are refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace linkcheck::runner {

struct Flags {
  std::string model_path = "model.pte";
  std::string method;  // empty: the program's first
  int num_runs = 1;
  std::vector<std::string> inputs;     // files of raw element bytes, one an input; empty: made up
  std::optional<uint64_t> seed;        // made-up inputs are random; nothing: all ones
  bool device_io = false;              // inputs are put on the GPU, outputs must be there
  unsigned int green_context_sms = 0;  // 0: an ordinary stream
};

// The flags, or one line that says what is wrong.
std::variant<Flags, std::string> parse_flags(const std::vector<std::string>& arguments);

extern const char kUsage[];

}  // namespace linkcheck::runner
