#include "cuda_event.h"

#include "cuda_call.h"

namespace linkcheck::trt {

Outcome<CudaEvent> CudaEvent::create() {
  cudaEvent_t event = nullptr;
  // BlockingSync: a waiting host thread sleeps instead of spinning.
  Status status =
      cuda_status(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync),
                  "cudaEventCreateWithFlags");
  if (!status.ok()) return std::move(status.failure());
  return CudaEvent(event);
}

CudaEvent::~CudaEvent() {
  if (event_ != nullptr) cuda_succeeded(cudaEventDestroy(event_), "cudaEventDestroy");
}

Status CudaEvent::record(cudaStream_t stream) {
  return cuda_status(cudaEventRecord(event_, stream), "cudaEventRecord");
}

Status CudaEvent::wait() const {
  return cuda_status(cudaEventSynchronize(event_), "cudaEventSynchronize");
}

}  // namespace linkcheck::trt
