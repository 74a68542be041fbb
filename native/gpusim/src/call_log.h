// Counts the calls made into the simulator and decides which of them shall fail. It knows nothing
// of what they do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cuda_runtime_api.h"

namespace gpusim {

class CallLog {
 public:
  // Notes one call and answers the error it must fail with, or cudaSuccess.
  cudaError_t enter(const char* name);

  void add_failure(const std::string& call, uint64_t nth, cudaError_t error);
  void clear_failures() { failures_.clear(); }
  const std::vector<std::string>& calls() const { return calls_; }
  void clear_calls() { calls_.clear(); }

 private:
  struct Failure {
    std::string call;
    uint64_t left;
    cudaError_t error;
  };
  std::vector<std::string> calls_;
  std::vector<Failure> failures_;
};

}  // namespace gpusim
