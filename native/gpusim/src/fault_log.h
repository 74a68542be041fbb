// Collects misuse of the simulated GPU. It only records; what counts as misuse is decided where the
// work is seen.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gpusim/control.h"

namespace gpusim {

class FaultLog {
 public:
  void add(FaultKind kind, std::string text) { faults_.push_back({kind, std::move(text)}); }
  const std::vector<Fault>& all() const { return faults_; }
  void clear() { faults_.clear(); }

 private:
  std::vector<Fault> faults_;
};

}  // namespace gpusim
