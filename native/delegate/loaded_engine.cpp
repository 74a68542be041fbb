#include "loaded_engine.h"

#include <executorch/runtime/platform/log.h>

#include "device_scope.h"
#include "execution.h"
#include "stream_selection.h"

namespace linkcheck::trt {

LoadedEngine::Parts::~Parts() {
  if (engine == nullptr && contexts == nullptr) return;
  DeviceScope device(traits.device);
  if (!device.status().ok()) {
    // Freed all the same: CUDA finds most things by their address, and to keep them would be a leak
    // for sure.
    ET_LOG(Error, "TensorRTBackend::destroy: %s", device.status().failure().message.c_str());
  }
  contexts.reset();
  engine.reset();
}

Status LoadedEngine::execute(Arguments arguments) {
  DeviceScope device(parts_.traits.device);
  if (!device.status().ok()) return std::move(device.status());
  const StreamSelection selection = select_stream();
  Status status = check_stream(selection, parts_.traits.device);
  if (!status.ok()) return status;
  const ContextPool::Lease lease = parts_.contexts->acquire(selection.stream);
  Execution execution(parts_.signature, parts_.traits, lease.slot(), selection.stream,
                      selection.chosen_by_caller && parts_.options.async_return);
  return execution.run(arguments);
}

}  // namespace linkcheck::trt
