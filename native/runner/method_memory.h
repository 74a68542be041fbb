// The memory that one method of a program plans for: host and device buffers, and the runtime's own
// allocators.
#pragma once

#include <executorch/extension/memory_allocator/malloc_memory_allocator.h>
#include <executorch/runtime/core/device_memory_buffer.h>
#include <executorch/runtime/core/hierarchical_allocator.h>
#include <executorch/runtime/executor/memory_manager.h>
#include <executorch/runtime/executor/method_meta.h>

#include <optional>
#include <vector>

namespace linkcheck::runner {

class MethodMemory {
 public:
  // Throws Problem when a buffer cannot be had.
  explicit MethodMemory(const executorch::runtime::MethodMeta& meta);
  MethodMemory(const MethodMemory&) = delete;
  MethodMemory& operator=(const MethodMemory&) = delete;

  executorch::runtime::MemoryManager* manager() { return &*manager_; }
  // The GPU of the first planned buffer that is on one; 0 when none is.
  int device() const;

 private:
  std::vector<std::vector<uint8_t>> host_;
  std::vector<executorch::runtime::DeviceMemoryBuffer> device_;
  std::vector<executorch::runtime::Span<uint8_t>> spans_;
  std::vector<executorch::runtime::etensor::Device> devices_;
  std::optional<executorch::runtime::HierarchicalAllocator> planned_;
  executorch::extension::MallocMemoryAllocator method_allocator_;
  executorch::extension::MallocMemoryAllocator temp_allocator_;
  std::optional<executorch::runtime::MemoryManager> manager_;
};

}  // namespace linkcheck::runner
