#include "kernel_log.h"

#include <cstdlib>
#include <fstream>

namespace gpusim {

void KernelLog::add(const KernelRun& run) {
  runs_.push_back(run);
  const char* path = std::getenv("GPUSIM_KERNEL_LOG");
  if (path == nullptr) return;
  std::ofstream(path, std::ios::app)
      << "kernel on device " << run.device << ", SMs " << run.first_sm << " to "
      << run.first_sm + run.sm_count - 1 << "\n";
}

}  // namespace gpusim
