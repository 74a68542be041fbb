// One execute of an engine, from checked arguments to results. Lives for one call, on one thread.
//
// Every CUDA operation goes to the one selected stream. Whatever goes wrong, nothing that this call
// enqueued is still running when it returns an error.
#pragma once

#include <cuda_runtime_api.h>

#include "arguments.h"
#include "context_slot.h"
#include "device_traits.h"
#include "signature.h"
#include "stream_selection.h"

namespace linkcheck::trt {

// When the results are there.
enum class Completion {
  kOnReturn,
  kEarly,   // may be on their way on return, if no host memory waits for them
  kByGraph  // whenever the graph that the stream is captured into runs; all memory is the device's
};

class Execution {
 public:
  Execution(const Signature& signature, const DeviceTraits& traits, const DriverApi& driver,
            ContextSlot& slot, const StreamSelection& selection, Completion completion);

  // Throws std::bad_alloc only, and then, too, nothing is still running.
  Status run(Arguments arguments);
  // Whether anything was given to CUDA, to be run or captured.
  bool enqueued() const { return enqueued_; }

 private:
  Status run_steps(Arguments arguments);
  void clean_up() noexcept;
  Status check_capturable() const;
  Status bind_input(size_t index, const executorch::aten::Tensor& tensor);
  Status infer_shapes();
  Status bind_output(size_t index, executorch::aten::Tensor& tensor);
  Status bind_alias(size_t index);
  // Gives the tensor the shape that the engine computed.
  Status resize_output(size_t index, executorch::aten::Tensor& tensor);
  // Device memory for a tensor that is in host memory, or empty.
  Status stage(StagingBuffer& staging, BoundArgument& bound);
  Status set_address(const TensorDescription& tensor, BoundArgument& bound);
  Status enqueue();
  Status copy_outputs();
  Status finish();
  Status copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind);

  const Signature& signature_;
  const DeviceTraits& traits_;
  const DriverApi& driver_;
  ContextSlot& slot_;
  const cudaStream_t stream_;
  const CUcontext stream_context_;
  const Completion completion_;
  bool shapes_changed_ = false;
  bool enqueued_ = false;    // something of this call may be running
  bool host_waits_ = false;  // host memory is read or written by this call's work
};

}  // namespace linkcheck::trt
