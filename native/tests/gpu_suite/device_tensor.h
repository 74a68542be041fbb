// A float tensor in host or device memory, for programs that run on a real GPU.
#pragma once

#include <cuda_runtime_api.h>
#include <executorch/runtime/core/evalue.h>

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

namespace gpu_suite {

enum class Place { kHost, kDevice };

class FloatTensor {
 public:
  FloatTensor(std::vector<int32_t> sizes, Place place, float value = 0.0F);
  ~FloatTensor();
  FloatTensor(const FloatTensor&) = delete;
  FloatTensor& operator=(const FloatTensor&) = delete;

  executorch::runtime::EValue* value() { return &*value_; }
  void* data() const { return data_; }
  size_t bytes() const { return count_ * sizeof(float); }
  // Waits for nothing but its own copy.
  std::vector<float> read() const;
  bool holds(float value) const;

 private:
  const Place place_;
  std::vector<int32_t> sizes_;
  std::vector<uint8_t> dim_order_;
  std::vector<int32_t> strides_;
  size_t count_ = 1;
  std::vector<float> host_;
  void* data_ = nullptr;
  std::optional<executorch::runtime::etensor::TensorImpl> impl_;
  std::optional<executorch::runtime::EValue> value_;
};

}  // namespace gpu_suite
