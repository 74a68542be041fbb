#include "method_memory.h"

#include <string>

#include "problem.h"

namespace linkcheck::runner {

MethodMemory::MethodMemory(const executorch::runtime::MethodMeta& meta) {
  bool on_device = false;
  for (size_t i = 0; i < meta.num_memory_planned_buffers(); ++i) {
    const std::string name = "planned buffer " + std::to_string(i);
    const auto size = static_cast<size_t>(require(meta.memory_planned_buffer_size(i), name));
    const auto device = require(meta.memory_planned_buffer_device(i), name);
    devices_.push_back(device);
    if (device.is_cpu()) {
      spans_.emplace_back(host_.emplace_back(size).data(), size);
      continue;
    }
    on_device = true;
    device_.push_back(require(
        executorch::runtime::DeviceMemoryBuffer::create(size, device.type(), device.index()),
        name));
    spans_.push_back(device_.back().as_span());
  }
  const executorch::runtime::Span<executorch::runtime::Span<uint8_t>> spans{spans_.data(),
                                                                            spans_.size()};
  if (on_device) {
    planned_.emplace(spans, executorch::runtime::Span<const executorch::runtime::etensor::Device>{
                                devices_.data(), devices_.size()});
  } else {
    planned_.emplace(spans);
  }
  manager_.emplace(&method_allocator_, &*planned_, &temp_allocator_);
}

int MethodMemory::device() const {
  for (const executorch::runtime::etensor::Device& device : devices_) {
    if (!device.is_cpu() && device.index() >= 0) return device.index();
  }
  return 0;
}

}  // namespace linkcheck::runner
