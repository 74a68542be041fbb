#include "context_slot.h"

#include <executorch/runtime/platform/log.h>

#include <new>
#include <utility>

#include "cuda_call.h"

namespace linkcheck::trt {

ContextSlot::ContextSlot(std::unique_ptr<EngineContext> context, const DriverApi& driver,
                         const Signature& signature)
    : input_staging_(signature.inputs.size()),
      output_staging_(signature.outputs.size()),
      done_(driver),
      context_(std::move(context)),
      inputs_(signature.inputs.size()),
      outputs_(signature.outputs.size()) {}

Outcome<std::unique_ptr<ContextSlot>> ContextSlot::create(Engine& engine,
                                                          const Signature& signature,
                                                          const DriverApi& driver) {
  auto context = engine.create_context();
  if (!context.ok()) return std::move(context.failure());
  return std::unique_ptr<ContextSlot>(
      new ContextSlot(std::move(context.value()), driver, signature));
}

ContextSlot::~ContextSlot() {
  try {
    // Twice: a first failure leaves "unknown", and then the whole device is waited for.
    if (settle().ok() || settle().ok()) return;
  } catch (const std::bad_alloc&) {
    // No memory for the words of a failure, which nobody would read: the device is waited for.
    if (cuda_succeeded(cudaDeviceSynchronize(), "cudaDeviceSynchronize")) return;
  }
  ET_LOG(Error,
         "TensorRTBackend: work of an engine could not be waited for before it is destroyed");
}

Status ContextSlot::settle() {
  Status status;
  if (left_ == Left::kEvent) status = done_.wait();
  // The event is of no use when its green context is gone; the device can be waited for all the
  // same.
  if (!status.ok()) left_ = Left::kUnknown;
  if (left_ == Left::kUnknown) {
    status = cuda_status(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  if (status.ok()) {
    left_ = Left::kNothing;
  } else {
    left_ = Left::kUnknown;
  }
  return status;
}

Status ContextSlot::leave_running(cudaStream_t stream, CUcontext context) {
  Status status = done_.record(stream, context);
  if (status.ok()) left_ = Left::kEvent;
  return status;
}

void ContextSlot::forget_configuration() {
  for (auto* list : {&inputs_, &outputs_}) {
    for (BoundArgument& argument : *list) {
      argument.known_shape.reset();
      argument.known_address = nullptr;
    }
  }
}

void ContextSlot::drain(cudaStream_t stream) noexcept {
  if (cuda_succeeded(cudaStreamSynchronize(stream), "cudaStreamSynchronize (after an error)") ||
      cuda_succeeded(cudaDeviceSynchronize(), "cudaDeviceSynchronize (after an error)")) {
    return;
  }
  left_ = Left::kUnknown;
}

}  // namespace linkcheck::trt
