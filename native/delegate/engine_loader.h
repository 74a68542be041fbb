// From a blob to a LoadedEngine: finds the engine's bytes, loads them, and lets go of the host copy
// before the first context.
#pragma once

#include <executorch/runtime/backend/interface.h>

#include "loaded_engine.h"

namespace linkcheck::trt {

// `processed` is freed once the engine is on the device, and left alone on failure before that.
Outcome<LoadedEngine::Parts> load_engine(
    executorch::runtime::BackendInitContext& context,
    executorch::runtime::FreeableBuffer& processed,
    executorch::runtime::ArrayRef<executorch::runtime::CompileSpec> compile_specs);

}  // namespace linkcheck::trt
