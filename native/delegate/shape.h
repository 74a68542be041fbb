// The dimensions of a tensor, without allocation. -1 stands for a dynamic dimension, a rank of -1
// for "unknown".
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace linkcheck::trt {

struct Shape {
  static constexpr int32_t kMaxRank = 8;  // nvinfer1::Dims::MAX_DIMS

  int32_t rank = 0;
  std::array<int64_t, kMaxRank> sizes{};

  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank != b.rank) return false;
    for (int32_t i = 0; i < a.rank; ++i) {
      if (a.sizes[static_cast<size_t>(i)] != b.sizes[static_cast<size_t>(i)]) return false;
    }
    return true;
  }
  friend bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }
};

// Number of bytes of a tensor; nothing if a dimension is unknown or the product does not fit.
inline std::optional<size_t> bytes_of(const Shape& shape, size_t element_size) {
  if (shape.rank < 0) return std::nullopt;
  size_t bytes = element_size;
  for (int32_t i = 0; i < shape.rank; ++i) {
    const int64_t size = shape.sizes[static_cast<size_t>(i)];
    if (size < 0) return std::nullopt;
    if (size > 0 && bytes > std::numeric_limits<size_t>::max() / static_cast<size_t>(size)) {
      return std::nullopt;
    }
    bytes *= static_cast<size_t>(size);
  }
  return bytes;
}

inline std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int32_t i = 0; i < shape.rank; ++i) {
    if (i > 0) text += ",";
    text += std::to_string(shape.sizes[static_cast<size_t>(i)]);
  }
  return text + "]";
}

}  // namespace linkcheck::trt
