// Which multiprocessors the kernels that ran could run on. It orders and checks nothing.
#pragma once

#include <vector>

#include "gpusim/control.h"

namespace gpusim {

class KernelLog {
 public:
  void add(const KernelRun& run);
  void clear() { runs_.clear(); }
  const std::vector<KernelRun>& runs() const { return runs_; }

 private:
  std::vector<KernelRun> runs_;
};

}  // namespace gpusim
