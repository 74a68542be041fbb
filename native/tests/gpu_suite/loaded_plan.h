// One plan loaded through ExecuTorch's registry, as a program would load it.
#pragma once

#include <executorch/extension/memory_allocator/malloc_memory_allocator.h>
#include <executorch/runtime/backend/interface.h>

#include <string>
#include <vector>

#include "device_tensor.h"

namespace gpu_suite {

// Bytes of a plan in the folder that the program was told. Throws std::runtime_error.
std::string read_plan(const std::string& folder, const std::string& name);

struct Options {
  bool async_return = true;
  int max_contexts = 4;
};

class LoadedPlan {
 public:
  // Throws std::runtime_error when the delegate refuses it.
  LoadedPlan(const std::string& plan, const std::vector<std::string>& inputs,
             const std::vector<std::string>& outputs, const Options& options = {});
  ~LoadedPlan();
  LoadedPlan(const LoadedPlan&) = delete;
  LoadedPlan& operator=(const LoadedPlan&) = delete;

  executorch::runtime::Error execute(std::vector<FloatTensor*> tensors) const;
  // The same without a heap allocation of its own.
  executorch::runtime::Error execute_values(executorch::runtime::EValue** values,
                                            size_t count) const;

 private:
  executorch::extension::MallocMemoryAllocator allocator_;
  const executorch::runtime::BackendInterface* backend_ = nullptr;
  executorch::runtime::DelegateHandle* handle_ = nullptr;
};

}  // namespace gpu_suite
