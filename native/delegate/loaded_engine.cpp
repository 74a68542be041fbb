#include "loaded_engine.h"

#include <executorch/runtime/platform/log.h>

#include <new>
#include <optional>

#include "capture_scope.h"
#include "device_scope.h"
#include "execution.h"
#include "stream_selection.h"

namespace linkcheck::trt {

LoadedEngine::Parts::~Parts() {
  if (engine == nullptr && contexts == nullptr) return;
  std::optional<DeviceScope> device;
  // Freed whatever happens here: CUDA finds most things by their address, and to keep them would be
  // a leak for sure.
  try {
    device.emplace(traits.device, driver, primary_context);
    if (!device->status().ok()) {
      ET_LOG(Error, "TensorRTBackend::destroy: %s", device->status().failure().message.c_str());
    }
  } catch (const std::bad_alloc&) {
    ET_LOG(Error, "TensorRTBackend::destroy: out of host memory");
  }
  contexts.reset();
  engine.reset();
}

Status LoadedEngine::execute(Arguments arguments) {
  DeviceScope device(parts_.traits.device, parts_.driver, parts_.primary_context);
  if (!device.status().ok()) return std::move(device.status());
  StreamSelection selection = select_stream();
  Status status =
      check_stream(selection, parts_.traits.device, parts_.primary_context, parts_.driver);
  if (!status.ok()) return status;
  const bool may_return_early = selection.chosen_by_caller && parts_.options.async_return;
  if (selection.capturing && !may_return_early) {
    return Failure{Error::NotSupported,
                   "the stream is being captured, so results cannot be ready on return: choose it "
                   "with CallerStreamGuard, and leave async_return on"};
  }
  // Making a context or waiting for one is not the capture's business.
  CaptureScope capture(selection.capturing);
  if (!capture.status().ok()) return std::move(capture.status());
  auto lease = parts_.contexts->acquire(StreamKey(selection.stream));
  if (!lease.ok()) return std::move(lease.failure());
  if (selection.capturing) lease.value().keep_for_graph();
  Execution execution(*parts_.signature, parts_.traits, parts_.driver, lease.value().slot(),
                      selection,
                      selection.capturing ? Completion::kByGraph
                      : may_return_early  ? Completion::kEarly
                                          : Completion::kOnReturn);
  status = execution.run(arguments);
  // Otherwise each refused attempt would cost a context.
  if (selection.capturing && !execution.enqueued()) lease.value().release_from_graph();
  return status;
}

}  // namespace linkcheck::trt
