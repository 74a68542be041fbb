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

Status CompletionEvent::record(cudaStream_t stream, CUcontext context) {
  const bool fits = event_ != nullptr && context == context_;
  if (!fits) {
    Status status = remake(context);
    if (!status.ok()) return status;
  }
  Status status = driver_status(driver_.record_event(event_, stream), "cuEventRecord");
  if (status.ok() || !fits) return status;
  // A context that is gone may have left its address to a new one, and the event was the old one's.
  status = remake(context);
  if (status.ok()) status = driver_status(driver_.record_event(event_, stream), "cuEventRecord");
  return status;
}

Status CompletionEvent::remake(CUcontext context) {
  destroy();
  context_ = context;
  Status status = driver_status(driver_.push_current(context), "cuCtxPushCurrent");
  if (!status.ok()) return status;
  status = create(event_);
  CUcontext popped = nullptr;
  Status restored = driver_status(driver_.pop_current(&popped), "cuCtxPopCurrent");
  return status.ok() ? std::move(restored) : std::move(status);
}

Status CompletionEvent::wait() const {
  // Over already, more often than not; anything else is the wait's to say.
  if (driver_.query_event(event_) == CUDA_SUCCESS) return {};
  return cuda_status(cudaEventSynchronize(event_), "cudaEventSynchronize");
}

}  // namespace linkcheck::trt
