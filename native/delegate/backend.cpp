#include "backend.h"

#include <executorch/runtime/platform/log.h>

#include <exception>
#include <new>
#include <utility>

#include "engine.h"
#include "engine_loader.h"
#include "loaded_engine.h"

namespace linkcheck::trt {
namespace {

using executorch::runtime::ArrayRef;
using executorch::runtime::BackendExecutionContext;
using executorch::runtime::BackendInitContext;
using executorch::runtime::CompileSpec;
using executorch::runtime::DelegateHandle;
using executorch::runtime::EValue;
using executorch::runtime::FreeableBuffer;
using executorch::runtime::MemoryAllocator;
using executorch::runtime::Result;
using executorch::runtime::Span;

// Runs `body`, which answers a Status or Outcome's Failure as an Error, and turns what is thrown
// into an error, too: only the standard library's allocations throw here.
template <typename Body>
auto without_exceptions(const char* step, Body body) noexcept -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    ET_LOG(Error, "TensorRTBackend::%s: out of host memory", step);
    return Error::MemoryAllocationFailed;
  } catch (const std::exception& exception) {
    ET_LOG(Error, "TensorRTBackend::%s: %s", step, exception.what());
    return Error::Internal;
  }
}

Error report(const char* step, const Failure& failure) {
  ET_LOG(Error, "TensorRTBackend::%s: %s", step, failure.message.c_str());
  return failure.code;
}

Result<DelegateHandle*> init_handle(BackendInitContext& context, FreeableBuffer* processed,
                                    ArrayRef<CompileSpec> compile_specs) {
  if (processed == nullptr) {
    return report("init", {Error::InvalidArgument, "there is no processed data"});
  }
  MemoryAllocator* allocator = context.get_runtime_allocator();
  if (allocator == nullptr) {
    return report("init", {Error::InvalidState, "there is no runtime allocator"});
  }
  auto parts = load_engine(context, *processed, compile_specs);
  if (!parts.ok()) return report("init", parts.failure());
  auto* memory = allocator->allocateInstance<LoadedEngine>();
  if (memory == nullptr) {
    return report("init", {Error::MemoryAllocationFailed, "no memory for the handle"});
  }
  auto* engine = new (memory) LoadedEngine(std::move(parts.value()));
  ET_LOG(Info, "TensorRTBackend::init: engine ready (%zu inputs, %zu outputs)",
         engine->num_inputs(), engine->num_outputs());
  return engine;
}

}  // namespace

TensorRTBackend& TensorRTBackend::instance() {
  static auto* backend = new TensorRTBackend();
  return *backend;
}

bool TensorRTBackend::is_available() const {
  return registration() == Error::Ok && Engine::is_available();
}

Result<DelegateHandle*> TensorRTBackend::init(BackendInitContext& context,
                                              FreeableBuffer* processed,
                                              ArrayRef<CompileSpec> compile_specs) const {
  if (registration() != Error::Ok) return registration();
  return without_exceptions("init", [&] { return init_handle(context, processed, compile_specs); });
}

Error TensorRTBackend::execute(BackendExecutionContext&, DelegateHandle* handle,
                               Span<EValue*> arguments) const {
  if (handle == nullptr) {
    return report("execute", {Error::DelegateInvalidHandle, "there is no handle"});
  }
  return without_exceptions("execute", [&] {
    Status status = static_cast<LoadedEngine*>(handle)->execute(arguments);
    return status.ok() ? Error::Ok : report("execute", status.failure());
  });
}

void TensorRTBackend::destroy(DelegateHandle* handle) const {
  // The memory is the runtime allocator's, which frees it with the program.
  if (handle != nullptr) static_cast<LoadedEngine*>(handle)->~LoadedEngine();
}

}  // namespace linkcheck::trt
