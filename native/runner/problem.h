// What stops the runner: one line for the user. Thrown inside the runner only, and caught in main.
#pragma once

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/result.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace linkcheck::runner {

class Problem : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline void require_ok(executorch::runtime::Error error, const std::string& what) {
  if (error != executorch::runtime::Error::Ok) {
    throw Problem(what + ": " + executorch::runtime::to_string(error));
  }
}

// The value, or a Problem that says what was wanted.
template <typename T>
T require(executorch::runtime::Result<T> result, const std::string& what) {
  require_ok(result.error(), what);
  return std::move(result.get());
}

}  // namespace linkcheck::runner
