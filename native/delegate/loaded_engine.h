// What init() makes and execute() uses: one engine, its signature, its contexts and its owner's
// options.
//
// Thread: execute() may be called from several threads; ContextPool says who waits for whom.
// Destruction waits for the engine's work, and nobody may be inside execute() then.
#pragma once

#include <memory>

#include "arguments.h"
#include "blob.h"
#include "context_pool.h"
#include "device_traits.h"
#include "driver_api.h"
#include "engine.h"
#include "options.h"
#include "signature.h"

namespace linkcheck::trt {

class LoadedEngine {
 public:
  // Everything an execute needs, in destruction order: the contexts go before the engine.
  struct Parts {
    DriverApi driver;
    DeviceTraits traits;
    CUcontext primary_context = nullptr;
    Options options;
    std::unique_ptr<const Signature> signature;  // the contexts refer to it
    std::shared_ptr<Engine> engine;
    std::unique_ptr<ContextPool> contexts;

    Parts() = default;
    Parts(Parts&&) = default;
    Parts& operator=(Parts&&) = default;
    ~Parts();
  };

  explicit LoadedEngine(Parts parts) : parts_(std::move(parts)) {}
  LoadedEngine(const LoadedEngine&) = delete;
  LoadedEngine& operator=(const LoadedEngine&) = delete;

  Status execute(Arguments arguments);

  size_t num_inputs() const { return parts_.signature->inputs.size(); }
  size_t num_outputs() const { return parts_.signature->outputs.size(); }

 private:
  Parts parts_;
};

}  // namespace linkcheck::trt
