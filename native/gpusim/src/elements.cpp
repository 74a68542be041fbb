#include "elements.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace gpusim {
namespace {

using nvinfer1::DataType;

uint32_t bits_of(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

float float_of(uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

float half_to_float(uint16_t half) {
  const int sign = (half >> 15) != 0 ? -1 : 1;
  const int exponent = (half >> 10) & 0x1F;
  const int fraction = half & 0x3FF;
  if (exponent == 31) {
    return fraction != 0 ? NAN : static_cast<float>(sign) * INFINITY;
  }
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  return static_cast<float>(sign * magnitude);
}

uint16_t float_to_half(float value) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const double magnitude = std::fabs(static_cast<double>(value));
  if (std::isnan(value)) return sign | 0x7E00;
  if (magnitude >= 65520.0) return sign | 0x7C00;
  if (magnitude == 0) return sign;
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  // One unit in the last place: 2^-24 for subnormal numbers, 2^(exponent - 11) otherwise.
  const int ulp = exponent - 11 < -24 ? -24 : exponent - 11;
  const auto units = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, -ulp)));
  if (ulp == -24) return static_cast<uint16_t>(sign | units);
  // A fraction that rounds up to 2048 carries into the exponent by itself.
  return static_cast<uint16_t>(sign + ((static_cast<uint32_t>(ulp) + 24) << 10) + units);
}

float bfloat_to_float(uint16_t bits) { return float_of(static_cast<uint32_t>(bits) << 16); }

uint16_t float_to_bfloat(float value) {
  if (std::isnan(value)) return 0x7FC0;
  const uint32_t bits = bits_of(value);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

template <typename T>
T load(const unsigned char* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

template <typename T>
void put(T value, unsigned char* to) {
  std::memcpy(to, &value, sizeof(value));
}

template <typename T>
T apply(Arithmetic arithmetic, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    const auto wide_a = static_cast<uint64_t>(a);
    const auto wide_b = static_cast<uint64_t>(b);
    return static_cast<T>(arithmetic == Arithmetic::kAdd ? wide_a + wide_b : wide_a * wide_b);
  } else {
    return arithmetic == Arithmetic::kAdd ? a + b : a * b;
  }
}

template <typename T>
void compute_as(Arithmetic arithmetic, const unsigned char* a, const unsigned char* b,
                unsigned char* result) {
  put(apply(arithmetic, load<T>(a), load<T>(b)), result);
}

}  // namespace

size_t element_size(DataType type) {
  switch (type) {
    case DataType::kFLOAT:
    case DataType::kINT32:
      return 4;
    case DataType::kHALF:
    case DataType::kBF16:
      return 2;
    case DataType::kINT8:
    case DataType::kUINT8:
    case DataType::kBOOL:
      return 1;
    case DataType::kINT64:
      return 8;
    default:
      return 0;
  }
}

void compute(DataType type, Arithmetic arithmetic, const unsigned char* a, const unsigned char* b,
             unsigned char* result) {
  switch (type) {
    case DataType::kFLOAT:
      return compute_as<float>(arithmetic, a, b, result);
    case DataType::kINT32:
      return compute_as<int32_t>(arithmetic, a, b, result);
    case DataType::kINT64:
      return compute_as<int64_t>(arithmetic, a, b, result);
    case DataType::kINT8:
      return compute_as<int8_t>(arithmetic, a, b, result);
    case DataType::kUINT8:
      return compute_as<uint8_t>(arithmetic, a, b, result);
    case DataType::kBOOL: {
      const bool left = *a != 0;
      const bool right = *b != 0;
      *result = (arithmetic == Arithmetic::kAdd ? left || right : left && right) ? 1 : 0;
      return;
    }
    case DataType::kHALF:
      return put(float_to_half(apply(arithmetic, half_to_float(load<uint16_t>(a)),
                                     half_to_float(load<uint16_t>(b)))),
                 result);
    case DataType::kBF16:
      return put(float_to_bfloat(apply(arithmetic, bfloat_to_float(load<uint16_t>(a)),
                                       bfloat_to_float(load<uint16_t>(b)))),
                 result);
    default:
      return;
  }
}

void store(DataType type, double value, unsigned char* result) {
  const auto whole = static_cast<int64_t>(value);
  switch (type) {
    case DataType::kFLOAT:
      return put(static_cast<float>(value), result);
    case DataType::kHALF:
      return put(float_to_half(static_cast<float>(value)), result);
    case DataType::kBF16:
      return put(float_to_bfloat(static_cast<float>(value)), result);
    case DataType::kINT32:
      return put(static_cast<int32_t>(whole), result);
    case DataType::kINT64:
      return put(whole, result);
    case DataType::kINT8:
    case DataType::kUINT8:
      return put(static_cast<uint8_t>(whole), result);
    case DataType::kBOOL:
      return put(static_cast<uint8_t>(value != 0 ? 1 : 0), result);
    default:
      return;
  }
}

}  // namespace gpusim
