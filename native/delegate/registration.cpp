// Registers the backend when this code is loaded, into the registry of the one libexecutorch.so of
// the process.
#include <executorch/runtime/platform/log.h>

#include "backend.h"

namespace linkcheck::trt {
namespace {

executorch::runtime::Error register_once() {
  const executorch::runtime::Error result =
      executorch::runtime::register_backend({kBackendName, &TensorRTBackend::instance()});
  if (result != executorch::runtime::Error::Ok) {
    ET_LOG(Error, "TensorRTBackend: registration failed: %s",
           executorch::runtime::to_string(result));
  }
  return result;
}

const executorch::runtime::Error kRegistration = register_once();

}  // namespace

executorch::runtime::Error TensorRTBackend::registration() { return kRegistration; }

}  // namespace linkcheck::trt
