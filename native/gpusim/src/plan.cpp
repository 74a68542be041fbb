#include "plan.h"

#include <cstring>

#include "elements.h"

namespace gpusim {
namespace {

constexpr char kMagic[8] = {'G', 'S', 'I', 'M', 'P', 'L', 'N', '1'};
constexpr uint32_t kMaxItems = 4096;

// Reads little-endian values; after the first read past the end everything is zero and ok() is
// false.
class Cursor {
 public:
  Cursor(const void* data, size_t size)
      : next_(static_cast<const unsigned char*>(data)), left_(size) {}

  bool ok() const { return ok_; }

  template <typename T>
  T read() {
    T value{};
    if (take(sizeof(T))) std::memcpy(&value, next_ - sizeof(T), sizeof(T));
    return value;
  }

  std::string text() {
    const auto size = read<uint16_t>();
    return take(size) ? std::string(reinterpret_cast<const char*>(next_ - size), size) : "";
  }

 private:
  bool take(size_t size) {
    ok_ = ok_ && size <= left_;
    if (!ok_) return false;
    next_ += size;
    left_ -= size;
    return true;
  }

  const unsigned char* next_;
  size_t left_;
  bool ok_ = true;
};

nvinfer1::Dims read_dims(Cursor& cursor, int32_t rank) {
  nvinfer1::Dims dims{};
  dims.nbDims = rank;
  for (int32_t i = 0; i < rank; ++i) dims.d[i] = cursor.read<int64_t>();
  return dims;
}

bool read_tensor(Cursor& cursor, PlanTensor& tensor) {
  tensor.name = cursor.text();
  tensor.is_input = cursor.read<uint8_t>() != 0;
  tensor.type = static_cast<nvinfer1::DataType>(cursor.read<uint8_t>());
  tensor.format = static_cast<nvinfer1::TensorFormat>(cursor.read<uint8_t>());
  tensor.shape_io = cursor.read<uint8_t>() != 0;
  tensor.aliased_input = cursor.text();
  const auto rank = cursor.read<uint8_t>();
  if (rank > nvinfer1::Dims::MAX_DIMS) return false;
  tensor.shape = read_dims(cursor, rank);
  tensor.minimum = read_dims(cursor, rank);
  tensor.optimum = read_dims(cursor, rank);
  tensor.maximum = read_dims(cursor, rank);
  return cursor.ok();
}

bool read_operation(Cursor& cursor, PlanOperation& operation, const Plan& plan) {
  const auto opcode = cursor.read<uint8_t>();
  operation.opcode = static_cast<Opcode>(opcode);
  operation.a = cursor.read<uint32_t>();
  operation.b = cursor.read<uint32_t>();
  operation.result = cursor.read<uint32_t>();
  operation.scalar = cursor.read<double>();
  const size_t count = plan.tensors.size();
  return cursor.ok() && opcode <= static_cast<uint8_t>(Opcode::kMultiplyScalar) &&
         operation.a < count && operation.b < count && operation.result < count &&
         !plan.tensors[operation.result].is_input;
}

}  // namespace

std::optional<Plan> read_plan(const void* data, size_t size) {
  if (data == nullptr || size < sizeof(kMagic) || std::memcmp(data, kMagic, sizeof(kMagic)) != 0) {
    return std::nullopt;
  }
  Cursor cursor(static_cast<const unsigned char*>(data) + sizeof(kMagic), size - sizeof(kMagic));
  Plan plan;
  plan.streamable_weights = cursor.read<int64_t>();
  const auto tensors = cursor.read<uint32_t>();
  const auto operations = cursor.read<uint32_t>();
  if (!cursor.ok() || tensors > kMaxItems || operations > kMaxItems) return std::nullopt;
  for (uint32_t i = 0; i < tensors; ++i) {
    if (!read_tensor(cursor, plan.tensors.emplace_back())) return std::nullopt;
  }
  for (uint32_t i = 0; i < operations; ++i) {
    if (!read_operation(cursor, plan.operations.emplace_back(), plan)) return std::nullopt;
  }
  return plan;
}

nvinfer1::Dims find_shape(const Plan& plan, const std::vector<nvinfer1::Dims>& given,
                          size_t index) {
  const PlanTensor& tensor = plan.tensors[index];
  if (tensor.is_input) return given[index].nbDims >= 0 ? given[index] : tensor.shape;
  nvinfer1::Dims shape = tensor.shape;
  for (const PlanOperation& operation : plan.operations) {
    if (operation.result != index || operation.a == index) continue;
    const nvinfer1::Dims source = find_shape(plan, given, operation.a);
    for (int32_t i = 0; i < shape.nbDims && i < source.nbDims; ++i) {
      if (shape.d[i] < 0) shape.d[i] = source.d[i];
    }
    break;
  }
  return shape;
}

}  // namespace gpusim
