#include "device_tensor.h"

#include <algorithm>
#include <stdexcept>

namespace gpu_suite {

FloatTensor::FloatTensor(std::vector<int32_t> sizes, Place place, float value)
    : place_(place), sizes_(std::move(sizes)), strides_(sizes_.size()) {
  for (size_t i = sizes_.size(); i-- > 0;) {
    strides_[i] = static_cast<int32_t>(count_);
    count_ *= static_cast<size_t>(sizes_[i]);
    dim_order_.insert(dim_order_.begin(), static_cast<uint8_t>(i));
  }
  host_.assign(count_, value);
  data_ = host_.data();
  if (place == Place::kDevice) {
    if (cudaMalloc(&data_, bytes()) != cudaSuccess ||
        cudaMemcpy(data_, host_.data(), bytes(), cudaMemcpyHostToDevice) != cudaSuccess) {
      throw std::runtime_error("no device memory");
    }
  }
  impl_.emplace(executorch::aten::ScalarType::Float, static_cast<ssize_t>(sizes_.size()),
                sizes_.data(), data_, dim_order_.data(), strides_.data(),
                executorch::runtime::TensorShapeDynamism::DYNAMIC_BOUND);
  value_.emplace(executorch::aten::Tensor(&*impl_));
}

FloatTensor::~FloatTensor() {
  if (place_ == Place::kDevice) cudaFree(data_);
}

std::vector<float> FloatTensor::read() const {
  if (place_ == Place::kHost) return host_;
  std::vector<float> values(count_);
  cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost);
  return values;
}

bool FloatTensor::holds(float value) const {
  const auto values = read();
  return std::all_of(values.begin(), values.end(), [&](float each) { return each == value; });
}

}  // namespace gpu_suite
