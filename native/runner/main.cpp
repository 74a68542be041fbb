// executorch_runner: runs one method of a program inside a CallerStreamGuard and prints its
// outputs.
#include <executorch/extension/cuda/caller_stream.h>
#include <executorch/extension/data_loader/file_data_loader.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/platform/runtime.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "cuda_device_allocator.h"
#include "flags.h"
#include "inputs.h"
#include "method_memory.h"
#include "print.h"
#include "problem.h"
#include "stream.h"

namespace linkcheck::runner {
namespace {

using executorch::extension::FileDataLoader;
using executorch::extension::cuda::CallerStreamGuard;
using executorch::extension::cuda::getCallerStream;
using executorch::runtime::Method;
using executorch::runtime::Program;

// Where outputs are is planned at export; the runner can only see that they are not on the host.
void require_outputs_on_device(Method& method) {
  for (size_t i = 0; i < method.outputs_size(); ++i) {
    const auto& output = method.get_output(i);
    if (!output.isTensor() || is_on_device(output.toTensor().const_data_ptr())) continue;
    throw Problem("--device_io: output " + std::to_string(i) +
                  " is not in device memory: export the method with its outputs on the GPU");
  }
}

void run(const Flags& flags) {
  executorch::runtime::runtime_init();
  CudaDeviceAllocator::register_if_absent();

  auto loader = require(FileDataLoader::from(flags.model_path.c_str()), flags.model_path);
  auto program =
      require(Program::load(&loader, Program::Verification::InternalConsistency), flags.model_path);
  const std::string name =
      flags.method.empty() ? require(program.get_method_name(0), flags.model_path) : flags.method;
  const auto meta = require(program.method_meta(name.c_str()), "method " + name);
  MethodMemory memory(meta);
  // The stream below must be on the GPU of the method's engines.
  use_device(memory.device());
  auto method = require(program.load_method(name.c_str(), memory.manager()), "method " + name);
  const Inputs inputs(meta, flags, memory.device());
  inputs.print();
  if (flags.device_io) require_outputs_on_device(method);

  Stream stream(flags.green_context_sms);
  if (stream.sms() > flags.green_context_sms && flags.green_context_sms > 0) {
    std::fprintf(stderr, "executorch_runner: asked for %u SMs, the driver gives %u\n",
                 flags.green_context_sms, stream.sms());
  }
  std::fprintf(stderr, "caller stream: %s\n", stream.description().c_str());
  {
    const CallerStreamGuard guard(stream.get());
    if (getCallerStream() != stream.get()) {
      throw Problem(
          "the selected stream is not the one that is read: libextension_cuda.so is there twice");
    }
    for (int i = 0; i < flags.num_runs; ++i) {
      inputs.set(method);
      require_ok(method.execute(), "execute");
    }
    stream.synchronize();
  }
  for (size_t i = 0; i < method.outputs_size(); ++i) print_output(i, method.get_output(i));
}

}  // namespace
}  // namespace linkcheck::runner

int main(int argc, char** argv) {
  constexpr int kUsageError = 2;
  auto parsed = linkcheck::runner::parse_flags(std::vector<std::string>(argv + 1, argv + argc));
  if (const auto* wrong = std::get_if<std::string>(&parsed)) {
    std::fprintf(stderr, "executorch_runner: %s\n%s", wrong->c_str(), linkcheck::runner::kUsage);
    return kUsageError;
  }
  try {
    linkcheck::runner::run(std::get<linkcheck::runner::Flags>(parsed));
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "executorch_runner: %s\n", exception.what());
    return 1;
  }
  return 0;
}
