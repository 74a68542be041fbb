#include "arguments.h"

#include <string>
#include <utility>

#include "context_slot.h"

namespace linkcheck::trt {
namespace {

using executorch::aten::Tensor;
using executorch::runtime::EValue;

Failure wrong(const TensorDescription& description, const std::string& what) {
  return {Error::InvalidArgument,
          (description.is_input ? "input " : "output ") + description.name + " " + what};
}

// Dense, last dimension fastest: the only layout that engines of this delegate have. Dimensions of
// size one may have any stride, because it is never used.
bool is_contiguous(const Tensor& tensor) {
  if (tensor.numel() == 0) return true;
  const auto order = tensor.dim_order();
  const auto strides = tensor.strides();
  int64_t expected = 1;
  for (ssize_t i = tensor.dim() - 1; i >= 0; --i) {
    const auto at = static_cast<size_t>(i);
    const int64_t size = tensor.size(i);
    if (size == 1) continue;
    if (strides.data() != nullptr && strides[at] != expected) return false;
    if (strides.data() == nullptr && order.data() != nullptr && order[at] != at) return false;
    expected *= size;
  }
  return true;
}

// An engine's scalar may come as a tensor of shape [1] while the program says rank 0.
bool is_scalar_for_vector_of_one(const Tensor& tensor, const TensorDescription& description) {
  return tensor.dim() == 0 && description.shape.rank == 1 && description.shape.sizes[0] == 1;
}

Status check_tensor(const TensorDescription& description, const Tensor& tensor) {
  if (tensor.scalar_type() != description.dtype) {
    return wrong(description,
                 "has scalar type " + std::to_string(static_cast<int>(tensor.scalar_type())) +
                     ", the engine takes " + std::to_string(static_cast<int>(description.dtype)));
  }
  const bool rank_fits =
      tensor.dim() == description.shape.rank ||
      (!description.is_input && is_scalar_for_vector_of_one(tensor, description));
  if (!rank_fits) {
    return wrong(description, "has rank " + std::to_string(tensor.dim()) + ", the engine takes " +
                                  std::to_string(description.shape.rank));
  }
  if (!is_contiguous(tensor)) return wrong(description, "is not contiguous in its default order");
  return {};
}

Status check_bounds(const TensorDescription& description, const Tensor& tensor) {
  for (ssize_t i = 0; i < tensor.dim(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (tensor.size(i) >= description.minimum.sizes[at] &&
        tensor.size(i) <= description.maximum.sizes[at]) {
      continue;
    }
    return wrong(description, "has shape " + to_string(shape_of(tensor)) + ", the engine takes " +
                                  to_string(description.minimum) + " to " +
                                  to_string(description.maximum));
  }
  return {};
}

Status locate_argument(const TensorDescription& description, const Tensor& tensor,
                       const DeviceTraits& traits, const DriverApi& driver, BoundArgument& bound) {
  bound.caller_memory = tensor.mutable_data_ptr();
  bound.bytes = tensor.nbytes();
  bound.address = nullptr;
  bound.location = MemoryLocation::kDevice;
  // An output's size is known only later; without memory it must turn out empty.
  if (bound.caller_memory == nullptr) {
    if (bound.bytes == 0 || !description.is_input) return {};
    return wrong(description, "has no memory");
  }
  auto location = locate(bound.caller_memory, traits, driver);
  if (!location.ok()) {
    Failure& failure = location.failure();
    return Failure{failure.code, (description.is_input ? "input " : "output ") + description.name +
                                     ": " + failure.message};
  }
  bound.location = location.value();
  return {};
}

Status check_input(const Signature& signature, size_t index, const Tensor& tensor,
                   const DeviceTraits& traits, const DriverApi& driver, BoundArgument& bound) {
  const TensorDescription& description = signature.inputs[index];
  Status status = check_bounds(description, tensor);
  if (status.ok()) status = locate_argument(description, tensor, traits, driver, bound);
  if (!status.ok() || !signature.is_written[index]) return status;
  // The engine writes into this memory and the caller must see it: a staged copy would be lost.
  if (bound.bytes == 0) return wrong(description, "is written by the engine and must not be empty");
  if (bound.location == MemoryLocation::kHost) {
    return wrong(description, "is written by the engine and must be in device memory");
  }
  return {};
}

}  // namespace

Shape shape_of(const Tensor& tensor) {
  Shape shape;
  shape.rank = tensor.dim() > Shape::kMaxRank ? -1 : static_cast<int32_t>(tensor.dim());
  for (int32_t i = 0; i < shape.rank; ++i) shape.sizes[static_cast<size_t>(i)] = tensor.size(i);
  return shape;
}

Status check_arguments(const Signature& signature, const DeviceTraits& traits,
                       const DriverApi& driver, Arguments arguments, ContextSlot& slot) {
  const size_t inputs = signature.inputs.size();
  const size_t expected = inputs + signature.outputs.size();
  if (arguments.size() != expected) {
    return Failure{Error::InvalidArgument, "the engine takes " + std::to_string(expected) +
                                               " arguments, not " +
                                               std::to_string(arguments.size())};
  }
  for (size_t i = 0; i < expected; ++i) {
    const bool is_input = i < inputs;
    const TensorDescription& description =
        is_input ? signature.inputs[i] : signature.outputs[i - inputs];
    const EValue* value = arguments[i];
    if (value == nullptr || !value->isTensor()) return wrong(description, "is no tensor");
    const Tensor& tensor = value->toTensor();
    Status status = check_tensor(description, tensor);
    if (!status.ok()) return status;
    status = is_input
                 ? check_input(signature, i, tensor, traits, driver, slot.inputs()[i])
                 : locate_argument(description, tensor, traits, driver, slot.outputs()[i - inputs]);
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace linkcheck::trt
