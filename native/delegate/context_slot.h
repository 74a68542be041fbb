// One execution context with everything that belongs to its runs: staging memory, the completion
// event, and what may still be running. A pool of these serves an engine.
//
// Thread: one at a time (ContextPool sees to it). The engine's GPU must be current for every call
// and the destructor.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <optional>
#include <vector>

#include "completion_event.h"
#include "engine.h"
#include "memory_location.h"
#include "staging_buffer.h"

namespace linkcheck::trt {

// One argument during one execute. Kept in the slot so that a steady-state execute allocates
// nothing.
struct BoundArgument {
  void* caller_memory = nullptr;
  MemoryLocation location = MemoryLocation::kHost;
  size_t bytes = 0;
  void* address = nullptr;  // what TensorRT reads or writes

  // What the context was told last, so that it need not be told again.
  std::optional<Shape> known_shape;
  void* known_address = nullptr;
};

class ContextSlot {
 public:
  static Outcome<std::unique_ptr<ContextSlot>> create(Engine& engine, const Signature& signature,
                                                      const DriverApi& driver);
  ~ContextSlot();
  ContextSlot(const ContextSlot&) = delete;
  ContextSlot& operator=(const ContextSlot&) = delete;

  // Waits for the work that the last execute left behind. A wait that fails is tried again by the
  // next call: the context is never taken for idle on a guess.
  Status settle();
  // Notes that work is left on `stream`, to be waited for by settle().
  Status leave_running(cudaStream_t stream, CUcontext context);
  // Waits for `stream` after an error; if that fails, the next settle() waits for the whole device.
  void drain(cudaStream_t stream) noexcept;
  // Notes that a graph may run the context's work at any time from now on.
  void leave_to_graph() { left_ = Left::kUnknown; }
  // Nothing that the context was told before counts: after an error it may know a part only.
  void forget_configuration();

  EngineContext& context() { return *context_; }
  std::vector<BoundArgument>& inputs() { return inputs_; }
  std::vector<BoundArgument>& outputs() { return outputs_; }
  StagingBuffer& input_staging(size_t index) { return input_staging_[index]; }
  StagingBuffer& output_staging(size_t index) { return output_staging_[index]; }
  // What a tensor without bytes is bound to: TensorRT takes no null address.
  StagingBuffer& placeholder() { return placeholder_; }

 private:
  enum class Left { kNothing, kEvent, kUnknown };

  ContextSlot(std::unique_ptr<EngineContext> context, const DriverApi& driver,
              const Signature& signature);

  std::vector<StagingBuffer> input_staging_;
  std::vector<StagingBuffer> output_staging_;
  StagingBuffer placeholder_;
  CompletionEvent done_;
  std::unique_ptr<EngineContext> context_;
  std::vector<BoundArgument> inputs_;
  std::vector<BoundArgument> outputs_;
  Left left_ = Left::kNothing;
};

}  // namespace linkcheck::trt
