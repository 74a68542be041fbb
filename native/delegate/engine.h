// TensorRT as the delegate sees it. engine.cpp is the only file that includes TensorRT's headers.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "failure.h"
#include "shape.h"
#include "signature.h"

namespace linkcheck::trt {

// One execution context of an engine: shapes and addresses for one run at a time.
//
// Thread: one at a time. The engine must outlive it, and work it enqueued must be over before it is
// reconfigured or destroyed.
class EngineContext {
 public:
  ~EngineContext();
  EngineContext(const EngineContext&) = delete;
  EngineContext& operator=(const EngineContext&) = delete;

  bool set_input_shape(const TensorDescription& tensor, const Shape& shape);
  bool set_address(const TensorDescription& tensor, void* address);
  // True when every shape is known now.
  bool infer_shapes();
  // Of an output, once shapes are inferred; its rank is -1 when TensorRT cannot say.
  Shape shape_of(const TensorDescription& tensor) const;
  bool enqueue(cudaStream_t stream);

 private:
  friend class Engine;
  struct State;
  explicit EngineContext(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// One engine on one GPU.
//
// Thread: contexts may be made from any thread. The GPU it was loaded on must be current for every
// call and for the destructor.
class Engine {
 public:
  // Loads serialized engine bytes onto the current GPU; they are not needed afterwards. `budget` is
  // the weight-streaming budget in bytes; nothing lets TensorRT choose. Contexts are made later,
  // because a budget cannot change once one exists.
  static Outcome<std::shared_ptr<Engine>> load(const void* data, size_t size,
                                               std::optional<int64_t> budget);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const std::vector<TensorDescription>& tensors() const;
  // Whether a load with this budget would give the same engine.
  bool has_budget(std::optional<int64_t> requested) const;
  Outcome<std::unique_ptr<EngineContext>> create_context();

  // Whether TensorRT can be used at all in this process.
  static bool is_available();

 private:
  struct State;
  explicit Engine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace linkcheck::trt
