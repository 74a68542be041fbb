#include "elements.h"

#include <cstdio>
#include <cstring>
#include <type_traits>

namespace linkcheck::runner {
namespace {

using executorch::aten::BFloat16;
using executorch::aten::Half;
using executorch::aten::ScalarType;

// Calls `body` with a value of the type's C++ type; answers false for a type the runner does not
// know.
template <typename Body>
bool with_type(ScalarType type, Body body) {
  switch (type) {
    case ScalarType::Float:
      return body(float{}), true;
    case ScalarType::Double:
      return body(double{}), true;
    case ScalarType::Half:
      return body(Half{}), true;
    case ScalarType::BFloat16:
      return body(BFloat16{}), true;
    case ScalarType::Byte:
      return body(uint8_t{}), true;
    case ScalarType::Char:
      return body(int8_t{}), true;
    case ScalarType::Short:
      return body(int16_t{}), true;
    case ScalarType::Int:
      return body(int32_t{}), true;
    case ScalarType::Long:
      return body(int64_t{}), true;
    case ScalarType::Bool:
      return body(bool{}), true;
    default:
      return false;
  }
}

template <typename T>
T made_up(std::mt19937_64* random) {
  if (random == nullptr) return static_cast<T>(1.0F);
  if constexpr (std::is_same_v<T, bool>) return ((*random)() & 1) != 0;
  if constexpr (std::is_integral_v<T>) return static_cast<T>((*random)() % 10);
  return static_cast<T>(static_cast<float>((*random)() >> 40) / static_cast<float>(1 << 24));
}

}  // namespace

std::optional<size_t> element_size(ScalarType type) {
  size_t size = 0;
  if (!with_type(type, [&](auto value) { size = sizeof(value); })) return std::nullopt;
  return size;
}

void fill_element(ScalarType type, std::mt19937_64* random, unsigned char* to) {
  with_type(type, [&](auto kind) {
    const auto value = made_up<decltype(kind)>(random);
    std::memcpy(to, &value, sizeof(value));
  });
}

std::string format_element(ScalarType type, const unsigned char* from) {
  char text[64] = "";
  with_type(type, [&](auto value) {
    std::memcpy(&value, from, sizeof(value));
    if constexpr (std::is_integral_v<decltype(value)>) {
      std::snprintf(text, sizeof(text), "%lld", static_cast<long long>(value));
    } else {
      std::snprintf(text, sizeof(text), "%.4f", static_cast<double>(value));
    }
  });
  return text;
}

}  // namespace linkcheck::runner
