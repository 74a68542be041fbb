#include "execution.h"

#include <executorch/runtime/core/exec_aten/util/tensor_util.h>

#include <array>
#include <limits>
#include <string>
#include <utility>

#include "cuda_call.h"

namespace linkcheck::trt {
namespace {

using executorch::aten::SizesType;
using executorch::aten::Tensor;

Failure invalid_state(const std::string& what) { return {Error::InvalidState, what}; }

}  // namespace

Execution::Execution(const Signature& signature, const DeviceTraits& traits,
                     const DriverApi& driver, ContextSlot& slot, const StreamSelection& selection,
                     Completion completion)
    : signature_(signature),
      traits_(traits),
      driver_(driver),
      slot_(slot),
      stream_(selection.stream),
      stream_context_(selection.context),
      completion_(completion) {}

Status Execution::run(Arguments arguments) {
  try {
    Status status = run_steps(arguments);
    if (!status.ok()) clean_up();
    return status;
  } catch (...) {
    // No memory, not even to say what failed. The caller's tensors may still be in use all the
    // same.
    clean_up();
    throw;
  }
}

void Execution::clean_up() noexcept {
  slot_.forget_configuration();
  // What was captured does not run, and a wait would only break the caller's capture.
  if (enqueued_ && completion_ != Completion::kByGraph) slot_.drain(stream_);
}

Status Execution::run_steps(Arguments arguments) {
  Status status = check_arguments(signature_, traits_, driver_, arguments, slot_);
  if (status.ok() && completion_ == Completion::kByGraph) status = check_capturable();
  if (status.ok()) status = slot_.settle();
  const size_t inputs = signature_.inputs.size();
  for (size_t i = 0; status.ok() && i < inputs; ++i) {
    status = bind_input(i, arguments[i]->toTensor());
  }
  if (status.ok()) status = infer_shapes();
  for (size_t i = 0; status.ok() && i < signature_.outputs.size(); ++i) {
    status = bind_output(i, arguments[inputs + i]->toTensor());
  }
  if (status.ok()) status = enqueue();
  if (status.ok()) status = copy_outputs();
  if (status.ok()) status = finish();
  return status;
}

Status Execution::check_capturable() const {
  for (const auto* list : {&slot_.inputs(), &slot_.outputs()}) {
    for (const BoundArgument& bound : *list) {
      if (bound.caller_memory == nullptr || bound.location == MemoryLocation::kDevice) continue;
      return Failure{Error::NotSupported,
                     "the stream is being captured, and a tensor is in host memory: a graph takes "
                     "tensors in device memory only"};
    }
  }
  return {};
}

Status Execution::bind_input(size_t index, const Tensor& tensor) {
  const TensorDescription& description = signature_.inputs[index];
  BoundArgument& bound = slot_.inputs()[index];
  const Shape shape = shape_of(tensor);
  if (bound.known_shape != shape) {
    if (!slot_.context().set_input_shape(description, shape)) {
      return invalid_state("TensorRT refused the shape of input " + description.name);
    }
    bound.known_shape = shape;
    shapes_changed_ = true;
  }
  Status status = stage(slot_.input_staging(index), bound);
  if (status.ok() && bound.bytes > 0 && bound.location == MemoryLocation::kHost) {
    status = copy(bound.address, bound.caller_memory, bound.bytes, cudaMemcpyHostToDevice);
  }
  if (status.ok()) status = set_address(description, bound);
  return status;
}

Status Execution::infer_shapes() {
  if (!shapes_changed_) return {};
  for (BoundArgument& bound : slot_.outputs()) bound.known_shape.reset();
  if (slot_.context().infer_shapes()) return {};
  return invalid_state("TensorRT could not infer the output shapes");
}

Status Execution::bind_output(size_t index, Tensor& tensor) {
  Status status = resize_output(index, tensor);
  if (!status.ok()) return status;
  if (signature_.aliased_inputs[index]) return bind_alias(index);
  BoundArgument& bound = slot_.outputs()[index];
  status = stage(slot_.output_staging(index), bound);
  if (status.ok()) status = set_address(signature_.outputs[index], bound);
  return status;
}

Status Execution::bind_alias(size_t index) {
  BoundArgument& bound = slot_.outputs()[index];
  bound.address = slot_.inputs()[*signature_.aliased_inputs[index]].address;
  return set_address(signature_.outputs[index], bound);
}

Status Execution::resize_output(size_t index, Tensor& tensor) {
  const TensorDescription& description = signature_.outputs[index];
  BoundArgument& bound = slot_.outputs()[index];
  if (!bound.known_shape) {
    const Shape inferred = slot_.context().shape_of(description);
    if (!bytes_of(inferred, description.element_size)) {
      return invalid_state("TensorRT does not know the shape of output " + description.name);
    }
    bound.known_shape = inferred;
  }
  const Shape& shape = *bound.known_shape;
  // check_arguments lets this difference of ranks pass: one element either way.
  const bool scalar = tensor.dim() == 0 && shape.rank == 1 && shape.sizes[0] == 1;
  if (!scalar) {
    std::array<SizesType, Shape::kMaxRank> sizes{};
    for (size_t i = 0; i < static_cast<size_t>(shape.rank); ++i) {
      if (shape.sizes[i] > std::numeric_limits<SizesType>::max()) {
        return invalid_state("output " + description.name + " is too large");
      }
      sizes[i] = static_cast<SizesType>(shape.sizes[i]);
    }
    const Error error =
        executorch::runtime::resize_tensor(tensor, {sizes.data(), static_cast<size_t>(shape.rank)});
    if (error != Error::Ok) {
      return Failure{error,
                     "output " + description.name + " cannot take shape " + to_string(shape)};
    }
  }
  bound.bytes = tensor.nbytes();
  if (bound.bytes > 0 && bound.caller_memory == nullptr) {
    return Failure{Error::InvalidArgument, "output " + description.name + " has no memory"};
  }
  return {};
}

Status Execution::stage(StagingBuffer& staging, BoundArgument& bound) {
  if (bound.location != MemoryLocation::kDevice && bound.bytes > 0) host_waits_ = true;
  if (bound.bytes > 0 && bound.location != MemoryLocation::kHost) {
    bound.address = bound.caller_memory;
    return {};
  }
  StagingBuffer& buffer = bound.bytes == 0 ? slot_.placeholder() : staging;
  const size_t bytes = bound.bytes == 0 ? 1 : bound.bytes;
  if (!buffer.holds(bytes)) {
    enqueued_ = true;
    // Memory of a graph's own would be gone with its first run.
    const bool ordered = traits_.memory_pools && completion_ != Completion::kByGraph;
    Status status = buffer.reserve(bytes, stream_, ordered);
    if (!status.ok()) return status;
  }
  bound.address = buffer.data();
  return {};
}

Status Execution::set_address(const TensorDescription& tensor, BoundArgument& bound) {
  if (bound.known_address == bound.address) return {};
  if (slot_.context().set_address(tensor, bound.address)) {
    bound.known_address = bound.address;
    return {};
  }
  return invalid_state("TensorRT refused the address of " + tensor.name);
}

Status Execution::enqueue() {
  enqueued_ = true;
  if (slot_.context().enqueue(stream_)) return {};
  return invalid_state(
      "TensorRT refused to enqueue: the stream must be on the engine's device and alive, and the "
      "per-thread default stream cannot be used while a green context is current");
}

Status Execution::copy_outputs() {
  for (size_t i = 0; i < signature_.outputs.size(); ++i) {
    const BoundArgument& bound = slot_.outputs()[i];
    if (bound.bytes == 0 || bound.address == bound.caller_memory) continue;
    // Either staged, or an alias whose own tensor is elsewhere than the input that was updated.
    const bool to_host = bound.location == MemoryLocation::kHost;
    if (bound.location != MemoryLocation::kDevice) host_waits_ = true;
    Status status = copy(bound.caller_memory, bound.address, bound.bytes,
                         to_host ? cudaMemcpyDeviceToHost : cudaMemcpyDefault);
    if (!status.ok()) return status;
  }
  return {};
}

Status Execution::finish() {
  if (completion_ == Completion::kByGraph) {
    slot_.leave_to_graph();
    return {};
  }
  if (completion_ == Completion::kEarly && !host_waits_) {
    return slot_.leave_running(stream_, stream_context_);
  }
  return cuda_status(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
}

Status Execution::copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  enqueued_ = true;
  return cuda_status(cudaMemcpyAsync(to, from, bytes, kind, stream_), "cudaMemcpyAsync");
}

}  // namespace linkcheck::trt
