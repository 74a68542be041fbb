#include "engine_loader.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "device_scope.h"
#include "engine_cache.h"

namespace linkcheck::trt {
namespace {

using executorch::runtime::ArrayRef;
using executorch::runtime::BackendInitContext;
using executorch::runtime::CompileSpec;
using executorch::runtime::FreeableBuffer;
using executorch::runtime::NamedDataMap;

constexpr uintptr_t kNamedEngineAlignment = 16;

// How the exporter calls the platform that this code runs on; empty for one that it has no name
// for.
constexpr std::string_view kThisPlatform =
#if defined(__linux__) && defined(__x86_64__)
    "linux_x86_64";
#elif defined(__linux__) && defined(__aarch64__)
    "linux_aarch64";
#else
    "";
#endif

// TensorRT's engines are for one platform. Names that are not known here are left to TensorRT.
Status check_platform(const std::string& platform) {
  constexpr std::array<std::string_view, 6> kKnown = {"linux_x86_64",   "linux_aarch64",
                                                      "windows_x86_64", "windows_arm64",
                                                      "win_x86_64",     "win_arm64"};
  const bool known = std::find(kKnown.begin(), kKnown.end(), platform) != kKnown.end();
  if (!known || kThisPlatform.empty() || platform == kThisPlatform) return {};
  return Failure{
      Error::DelegateInvalidCompatibility,
      "the engine was built for " + platform + ", this is " + std::string(kThisPlatform)};
}

// The engine that the blob names, from the program's named data.
Status find_named_engine(const NamedDataMap* named_data, const std::string& key,
                         FreeableBuffer& storage, Blob& blob) {
  if (named_data == nullptr) {
    return Failure{Error::InvalidProgram,
                   "the blob names " + key + ", the program has no named data"};
  }
  auto found = named_data->get_data(key);
  if (!found.ok()) {
    return Failure{Error::InvalidProgram, "the program's named data has no " + key};
  }
  // FreeableBuffer has no assignment; the target is empty, so nothing is lost by building it anew.
  storage.~FreeableBuffer();
  new (&storage) FreeableBuffer(std::move(found.get()));
  auto data = storage.data_safe();
  if (!data.ok() || data.get() == nullptr || storage.size() == 0) {
    return Failure{Error::InvalidProgram, "the named data " + key + " is empty"};
  }
  if (reinterpret_cast<uintptr_t>(data.get()) % kNamedEngineAlignment != 0) {
    return Failure{Error::InvalidProgram, "the named data " + key + " is not 16-byte aligned"};
  }
  blob.engine = data.get();
  blob.engine_size = storage.size();
  return {};
}

Outcome<Blob> read_processed(FreeableBuffer& processed) {
  auto data = processed.data_safe();
  if (!data.ok() || data.get() == nullptr) {
    return Failure{Error::InvalidArgument, "there is no processed data"};
  }
  return read_blob(data.get(), processed.size());
}

}  // namespace

Outcome<LoadedEngine::Parts> load_engine(BackendInitContext& context, FreeableBuffer& processed,
                                         ArrayRef<CompileSpec> compile_specs) {
  auto read = read_processed(processed);
  if (!read.ok()) return std::move(read.failure());
  Blob& blob = read.value();
  Status platform = check_platform(blob.target_platform);
  if (!platform.ok()) return std::move(platform.failure());
  auto options = read_options(context.runtime_specs(), compile_specs);
  if (!options.ok()) return std::move(options.failure());
  FreeableBuffer named_engine;
  if (blob.engine == nullptr) {
    Status status =
        find_named_engine(context.get_named_data_map(), blob.engine_key, named_engine, blob);
    if (!status.ok()) return std::move(status.failure());
  }

  LoadedEngine::Parts parts;
  auto driver = DriverApi::load();
  if (!driver.ok()) return std::move(driver.failure());
  parts.driver = driver.value();
  DeviceScope device(blob.device_id, parts.driver);
  if (!device.status().ok()) return std::move(device.status().failure());
  parts.options = options.value();
  parts.traits = read_device_traits(blob.device_id);
  auto engine = EngineCache::instance().load(blob.engine, blob.engine_size, blob.device_id,
                                             parts.options.weight_streaming_budget);
  if (!engine.ok()) {
    Failure& failure = engine.failure();
    if (failure.code == Error::DelegateInvalidCompatibility && !blob.hardware_compatible) {
      failure.message += "; it was exported for GPUs of one kind only, not hardware-compatible";
    }
    return std::move(failure);
  }
  parts.engine = std::move(engine.value());
  auto primary = find_primary_context(parts.driver, blob.device_id);
  if (!primary.ok()) return std::move(primary.failure());
  parts.primary_context = primary.value();
  // The engine is on the device; two copies at once would double the peak while contexts are made.
  named_engine.Free();
  processed.Free();
  auto signature = resolve_signature(blob.bindings, blob.aliases, parts.engine->tensors());
  if (!signature.ok()) return std::move(signature.failure());
  parts.signature = std::make_unique<const Signature>(std::move(signature.value()));
  parts.contexts =
      std::make_unique<ContextPool>(parts.engine, *parts.signature, parts.driver,
                                    parts.options.max_contexts, parts.options.waits_for_context);
  Status first = parts.contexts->make_first();
  if (!first.ok()) return std::move(first.failure());
  return parts;
}

}  // namespace linkcheck::trt
