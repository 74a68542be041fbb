#include "completion_event.h"

#include <utility>

#include "cuda_call.h"

namespace linkcheck::trt {
namespace {

Status create(cudaEvent_t& event) {
  // BlockingSync: a waiting host thread sleeps instead of spinning.
  return cuda_status(
      cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync),
      "cudaEventCreateWithFlags");
}

}  // namespace

CompletionEvent::~CompletionEvent() { destroy(); }

void CompletionEvent::destroy() {
  if (event_ == nullptr) return;
  cuda_succeeded(cudaEventDestroy(std::exchange(event_, nullptr)), "cudaEventDestroy");
}

Status CompletionEvent::record(cudaStream_t stream) {
  CUcontext context = nullptr;
  if (driver_.get_stream_context != nullptr) {
    Status status = driver_status(driver_.get_stream_context(stream, &context), "cuStreamGetCtx");
    if (!status.ok()) return status;
  }
  const bool fits = event_ != nullptr && context == context_;
  if (!fits) {
    Status status = remake(context);
    if (!status.ok()) return status;
  }
  const cudaError_t result = cudaEventRecord(event_, stream);
  // A context that is gone may have left its address to a new one, and the event was the old one's.
  if (result == cudaSuccess || !fits) return cuda_status(result, "cudaEventRecord");
  cuda_succeeded(result, "cudaEventRecord");
  Status status = remake(context);
  if (status.ok()) status = cuda_status(cudaEventRecord(event_, stream), "cudaEventRecord");
  return status;
}

Status CompletionEvent::remake(CUcontext context) {
  destroy();
  context_ = context;
  if (context == nullptr || driver_.push_current == nullptr || driver_.pop_current == nullptr) {
    return create(event_);
  }
  Status status = driver_status(driver_.push_current(context), "cuCtxPushCurrent");
  if (!status.ok()) return status;
  status = create(event_);
  CUcontext popped = nullptr;
  Status restored = driver_status(driver_.pop_current(&popped), "cuCtxPopCurrent");
  return status.ok() ? std::move(restored) : std::move(status);
}

Status CompletionEvent::wait() const {
  return cuda_status(cudaEventSynchronize(event_), "cudaEventSynchronize");
}

}  // namespace linkcheck::trt
