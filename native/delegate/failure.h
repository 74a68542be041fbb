// How the delegate's parts say that something failed: ExecuTorch's code and one line of text.
// Logging is not here: the backend logs a failure once, with the name of the step.
#pragma once

#include <executorch/runtime/core/error.h>

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace linkcheck::trt {

using executorch::runtime::Error;

struct Failure {
  Error code;
  std::string message;
};

// Nothing, or a failure. A success allocates nothing.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Failure failure) : failure_(std::move(failure)) {}  // NOLINT: a failure is a status

  bool ok() const { return !failure_.has_value(); }
  Failure& failure() { return *failure_; }

 private:
  std::optional<Failure> failure_;
};

// A value, or a failure.
template <typename T>
class [[nodiscard]] Outcome {
 public:
  Outcome(T value) : content_(std::move(value)) {}            // NOLINT: a value is an outcome
  Outcome(Failure failure) : content_(std::move(failure)) {}  // NOLINT: so is a failure

  bool ok() const { return std::holds_alternative<T>(content_); }
  T& value() { return std::get<T>(content_); }
  Failure& failure() { return std::get<Failure>(content_); }

 private:
  std::variant<T, Failure> content_;
};

}  // namespace linkcheck::trt
