// Checks the delegate on a real GPU, with the stand-in for TensorRT: one line a check.
//
//     gpu_suite PLAN_FOLDER
//
// Exit status 0 if none failed. A check that the machine is not made for is skipped by name.
#include <executorch/extension/cuda/caller_stream.h>
#include <executorch/runtime/platform/platform.h>
#include <executorch/runtime/platform/runtime.h>
#include <ptx_engine/probe.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "green_context.h"
#include "loaded_plan.h"
#include "stream.h"

namespace gpu_suite {
namespace {

namespace et = executorch::runtime;
using executorch::extension::cuda::CallerStreamGuard;
using executorch::runtime::Error;
using linkcheck::runner::Stream;
using Clock = std::chrono::steady_clock;

constexpr uint64_t kLong = 300'000'000;  // nanoseconds: what no execute takes
const std::vector<int32_t> kShape = {2, 3, 4, 4};

std::string plan_folder;
std::mutex log_mutex;
std::string logged;

void keep_errors(et_timestamp_t, et_pal_log_level_t level, const char*, const char*, size_t,
                 const char* message, size_t length) {
  if (level != et_pal_log_level_t::kError) return;
  const std::lock_guard<std::mutex> lock(log_mutex);
  logged.append(message, length).append("\n");
}

class Skipped : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

void require(bool holds, const std::string& what) {
  if (holds) return;
  const std::lock_guard<std::mutex> lock(log_mutex);
  throw std::runtime_error(what + (logged.empty() ? "" : " (logged: " + logged + ")"));
}

void require_cuda(cudaError_t result, const char* what) {
  require(result == cudaSuccess, std::string(what) + ": " + cudaGetErrorName(result));
}

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

std::string fixed(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3f", value);
  return text;
}

std::unique_ptr<LoadedPlan> add_one(const Options& options = {}) {
  return std::make_unique<LoadedPlan>(read_plan(plan_folder, "add_one"),
                                      std::vector<std::string>{"input_0"},
                                      std::vector<std::string>{"output_0"}, options);
}

std::unique_ptr<LoadedPlan> vector_plan() {
  return std::make_unique<LoadedPlan>(read_plan(plan_folder, "vector"),
                                      std::vector<std::string>{"x"}, std::vector<std::string>{"y"});
}

struct Pair {
  explicit Pair(Place place, float value = 1.0F)
      : input(kShape, place, value), output(kShape, place) {}
  FloatTensor input;
  FloatTensor output;
  std::vector<FloatTensor*> both() { return {&input, &output}; }
};

size_t free_device_memory() {
  size_t free = 0;
  size_t total = 0;
  require_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return free;
}

size_t resident_kilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmRSS:", 0) == 0) return std::stoul(line.substr(6));
  }
  return 0;
}

// Each check answers what to say about it.

std::string host_tensors() {
  const auto plan = add_one();
  Pair host(Place::kHost);
  require(plan->execute(host.both()) == Error::Ok, "execute");
  require(host.output.holds(2.0F), "wrong result");
  return "ready on return, without a guard";
}

std::string ordering() {
  constexpr int kRounds = 200;
  const auto plan = add_one();
  const Stream stream(0);
  Pair pair(Place::kDevice, 0.0F);
  require(ptx_engine::spin(stream.get(), 20'000'000), "spin");
  const CallerStreamGuard guard(stream.get());
  for (int i = 0; i < kRounds; ++i) {
    require(plan->execute(pair.both()) == Error::Ok, "execute");
    require_cuda(cudaMemcpyAsync(pair.input.data(), pair.output.data(), pair.input.bytes(),
                                 cudaMemcpyDeviceToDevice, stream.get()),
                 "copy");
  }
  require_cuda(cudaStreamSynchronize(stream.get()), "synchronize");
  require(pair.input.holds(static_cast<float>(kRounds)), "wrong result");
  return std::to_string(kRounds) + " executes and copies in turn, one wait at the end";
}

std::string early_return() {
  const auto plan = add_one();
  const Stream stream(0);
  Pair pair(Place::kDevice);
  const CallerStreamGuard guard(stream.get());
  require(plan->execute(pair.both()) == Error::Ok, "warm-up");
  require_cuda(cudaStreamSynchronize(stream.get()), "synchronize");
  require(ptx_engine::spin(stream.get(), kLong), "spin");
  const auto start = Clock::now();
  require(plan->execute(pair.both()) == Error::Ok, "execute");
  const double returned = milliseconds_since(start);
  require(cudaStreamQuery(stream.get()) == cudaErrorNotReady, "the long kernel is over already");
  require_cuda(cudaStreamSynchronize(stream.get()), "synchronize");
  const double done = milliseconds_since(start);
  require(returned < 50 && done > 200, "returned after " + fixed(returned) + " ms");
  require(pair.output.holds(2.0F), "wrong result");
  return "returned after " + fixed(returned) + " ms, a kernel before it ran " + fixed(done) + " ms";
}

std::string no_early_return() {
  Options options;
  options.async_return = false;
  const auto plan = add_one(options);
  const Stream stream(0);
  Pair pair(Place::kDevice);
  const CallerStreamGuard guard(stream.get());
  require(ptx_engine::spin(stream.get(), kLong), "spin");
  const auto start = Clock::now();
  require(plan->execute(pair.both()) == Error::Ok, "execute");
  require(cudaStreamQuery(stream.get()) == cudaSuccess, "work is still in flight");
  return "async_return off: returned after " + fixed(milliseconds_since(start)) + " ms, done";
}

std::string reuse_waits() {
  Options options;
  options.max_contexts = 1;
  const auto plan = add_one(options);
  const Stream busy(0);
  const Stream other(0);
  Pair first(Place::kDevice);
  Pair second(Place::kDevice);
  require(ptx_engine::spin(busy.get(), kLong), "spin");
  const auto start = Clock::now();
  {
    const CallerStreamGuard guard(busy.get());
    require(plan->execute(first.both()) == Error::Ok, "execute");
  }
  const CallerStreamGuard guard(other.get());
  require(plan->execute(second.both()) == Error::Ok, "execute");
  const double waited = milliseconds_since(start);
  require(waited > 200, "the only context was taken after " + fixed(waited) + " ms");
  require_cuda(cudaStreamSynchronize(other.get()), "synchronize");
  require(first.output.holds(2.0F) && second.output.holds(2.0F), "wrong result");
  return "one context: the second stream's call waited " + fixed(waited) + " ms for its event";
}

std::string streams_side_by_side() {
  const auto plan = add_one();
  const Stream busy(0);
  const Stream other(0);
  Pair first(Place::kDevice);
  Pair second(Place::kDevice);
  require(ptx_engine::spin(busy.get(), kLong), "spin");
  const auto start = Clock::now();
  {
    const CallerStreamGuard guard(busy.get());
    require(plan->execute(first.both()) == Error::Ok, "execute");
  }
  {
    const CallerStreamGuard guard(other.get());
    require(plan->execute(second.both()) == Error::Ok, "execute");
  }
  require_cuda(cudaStreamSynchronize(other.get()), "synchronize");
  const double done = milliseconds_since(start);
  require(cudaStreamQuery(busy.get()) == cudaErrorNotReady, "the long kernel is over already");
  require_cuda(cudaStreamSynchronize(busy.get()), "synchronize");
  require(done < 100, "the other stream was done after " + fixed(done) + " ms");
  require(first.output.holds(2.0F) && second.output.holds(2.0F), "wrong result");
  return "the other stream was done after " + fixed(done) + " ms, beside a long kernel";
}

std::string per_thread_streams() {
  const auto plan = add_one();
  std::string problem;
  double done = 0;
  Pair slow(Place::kDevice);
  require(ptx_engine::spin(cudaStreamPerThread, kLong), "spin");
  std::thread thread([&] {
    try {
      const auto start = Clock::now();
      for (int i = 0; i < 50; ++i) {
        Pair host(Place::kHost, static_cast<float>(i));
        require(plan->execute(host.both()) == Error::Ok, "execute");
        require(host.output.holds(static_cast<float>(i) + 1.0F), "wrong result");
      }
      done = milliseconds_since(start);
    } catch (const std::exception& exception) {
      problem = exception.what();
    }
  });
  thread.join();
  require(problem.empty(), problem);
  require(cudaStreamQuery(cudaStreamPerThread) == cudaErrorNotReady,
          "the other thread's 50 executes took as long as this thread's kernel");
  require(plan->execute(slow.both()) == Error::Ok, "execute");
  require(slow.output.holds(2.0F), "wrong result");
  return "50 executes of another thread in " + fixed(done) + " ms, beside this one's long kernel";
}

std::string confinement() {
  const auto plan = vector_plan();
  FloatTensor input({1 << 22}, Place::kDevice, 1.0F);
  FloatTensor output({1 << 22}, Place::kDevice);
  std::string text;
  for (const unsigned int sms : {8U, 32U, 0U}) {
    const Stream stream(sms);
    ptx_engine::take_multiprocessors_used();
    {
      const CallerStreamGuard guard(stream.get());
      for (int i = 0; i < 20; ++i) {
        require(plan->execute({&input, &output}) == Error::Ok, "execute");
      }
    }
    require_cuda(cudaStreamSynchronize(stream.get()), "synchronize");
    const size_t used = ptx_engine::take_multiprocessors_used().size();
    require(output.holds(2.0F), "wrong result");
    text += (text.empty() ? "" : ", ") + stream.description() + ": ran on " + std::to_string(used);
    const bool confined = sms == 0 ? used > 32 : used > 0 && used <= stream.sms();
    require(confined, text);
  }
  return text;
}

std::string green_early_return() {
  const auto plan = add_one();
  Pair pair(Place::kDevice);
  double returned = 0;
  {
    const Stream stream(8);
    const CallerStreamGuard guard(stream.get());
    require(ptx_engine::spin(stream.get(), kLong), "spin");
    const auto start = Clock::now();
    require(plan->execute(pair.both()) == Error::Ok, "execute");
    returned = milliseconds_since(start);
    require(cudaStreamQuery(stream.get()) == cudaErrorNotReady, "the long kernel is over already");
  }
  require(pair.output.holds(2.0F), "wrong result");
  for (int round = 0; round < 8; ++round) {
    // Its context is gone, and another may have its address: the event must be made anew.
    const Stream stream(8);
    const CallerStreamGuard guard(stream.get());
    require(plan->execute(pair.both()) == Error::Ok, "execute after its green context is gone");
  }
  return "returned after " + fixed(returned) + " ms; 8 more green contexts came and went";
}

template <typename Function>
Function* driver_function(const char* name, unsigned int version) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status{};
  require_cuda(cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &status),
               name);
  require(found != nullptr, std::string("the driver has no ") + name);
  return reinterpret_cast<Function*>(found);
}

CUcontext context_of(cudaStream_t stream) {
  CUcontext context = nullptr;
  driver_function<decltype(cuStreamGetCtx)>("cuStreamGetCtx", 9020)(stream, &context);
  return context;
}

std::string green_context_current() {
  const auto plan = add_one();
  Pair pair(Place::kHost);
  const Stream green(8);
  const Stream ordinary(0);
  auto* set_current = driver_function<decltype(cuCtxSetCurrent)>("cuCtxSetCurrent", 4000);
  auto* get_current = driver_function<decltype(cuCtxGetCurrent)>("cuCtxGetCurrent", 4000);
  const CUcontext primary = context_of(ordinary.get());
  const CUcontext wanted = context_of(green.get());
  require(primary != wanted, "the green stream's context is the primary one");
  require(set_current(wanted) == CUDA_SUCCESS, "cuCtxSetCurrent");
  const Error without_guard = plan->execute(pair.both());
  std::string said;
  {
    const std::lock_guard<std::mutex> lock(log_mutex);
    said = std::exchange(logged, "");
  }
  Error with_green = Error::Internal;
  Error with_ordinary = Error::Internal;
  {
    const CallerStreamGuard guard(green.get());
    with_green = plan->execute(pair.both());
  }
  {
    const CallerStreamGuard guard(ordinary.get());
    with_ordinary = plan->execute(pair.both());
  }
  CUcontext current = nullptr;
  get_current(&current);
  require(set_current(primary) == CUDA_SUCCESS, "cuCtxSetCurrent");
  require(without_guard == Error::InvalidArgument &&
              said.find("choose a stream of the green context") != std::string::npos,
          "the per-thread stream: error " + std::to_string(static_cast<int>(without_guard)) + ", " +
              said);
  require(with_green == Error::Ok, "a guard with its stream");
  require(with_ordinary == Error::Ok, "a guard with an ordinary stream");
  require(current == wanted, "the current context was changed");
  require(pair.output.holds(2.0F), "wrong result");
  return "the per-thread stream is refused with advice, guards work, the context stays current";
}

std::string two_delegates() {
  constexpr int kRounds = 100;
  const auto plan = add_one();
  const auto* copier = et::get_backend_class("CopyBackend");
  require(copier != nullptr, "CopyBackend is not registered");
  et::BackendInitContext init_context(nullptr);
  et::FreeableBuffer nothing;
  et::DelegateHandle* copy = copier->init(init_context, &nothing, {}).get();
  const Stream stream(0);
  FloatTensor data(kShape, Place::kDevice);
  FloatTensor sum(kShape, Place::kDevice);
  require(ptx_engine::spin(stream.get(), 20'000'000), "spin");
  const CallerStreamGuard guard(stream.get());
  for (int i = 0; i < kRounds; ++i) {
    require(plan->execute({&data, &sum}) == Error::Ok, "execute");
    et::EValue* values[] = {sum.value(), data.value()};
    et::BackendExecutionContext context;
    require(copier->execute(context, copy, {values, 2}) == Error::Ok, "the other delegate");
  }
  require_cuda(cudaStreamSynchronize(stream.get()), "synchronize");
  require(data.holds(static_cast<float>(kRounds)), "wrong result");
  return std::to_string(kRounds) + " turns of each on one stream, one wait at the end";
}

std::string graph_capture() {
  const auto plan = add_one();
  const Stream stream(0);
  Pair pair(Place::kDevice, 0.0F);
  const CallerStreamGuard guard(stream.get());
  require(plan->execute(pair.both()) == Error::Ok, "warm-up");
  // Not waited for: the capture begins while it is in flight.
  require_cuda(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal), "begin");
  const Error captured = plan->execute(pair.both());
  require_cuda(cudaMemcpyAsync(pair.input.data(), pair.output.data(), pair.input.bytes(),
                               cudaMemcpyDeviceToDevice, stream.get()),
               "copy");
  cudaGraph_t graph = nullptr;
  require_cuda(cudaStreamEndCapture(stream.get(), &graph), "end of capture");
  require(captured == Error::Ok, "execute while capturing");
  cudaGraphExec_t exec = nullptr;
  require_cuda(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
  for (int i = 0; i < 10; ++i) require_cuda(cudaGraphLaunch(exec, stream.get()), "launch");
  require_cuda(cudaStreamSynchronize(stream.get()), "synchronize");
  require(pair.input.holds(10.0F), "wrong result");
  // Host tensors cannot be captured, and the capture survives the refusal.
  Pair host(Place::kHost);
  require_cuda(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal), "begin");
  const Error refused = plan->execute(host.both());
  cudaGraph_t empty = nullptr;
  require_cuda(cudaStreamEndCapture(stream.get(), &empty), "end after a refusal");
  require(refused == Error::NotSupported, "a host tensor while capturing");
  cudaGraphDestroy(empty);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  return "10 launches; a capture began with work in flight; host tensors are refused";
}

std::string engine_sharing() {
  std::string plan = read_plan(plan_folder, "add_one");
  plan.resize(size_t{1} << 30, '\0');  // the stand-in puts all of it on the GPU
  const auto load = [&plan] {
    return std::make_unique<LoadedPlan>(plan, std::vector<std::string>{"input_0"},
                                        std::vector<std::string>{"output_0"});
  };
  require_cuda(cudaDeviceSynchronize(), "synchronize");
  const size_t before = free_device_memory();
  auto start = Clock::now();
  auto first = load();
  const double first_time = milliseconds_since(start);
  const size_t one = before - free_device_memory();
  start = Clock::now();
  auto second = load();
  const double second_time = milliseconds_since(start);
  const size_t two = before - free_device_memory();
  require(one >= size_t{1} << 30 && two < one + (size_t{16} << 20), "two loads cost two");
  first.reset();
  Pair host(Place::kHost);
  require(second->execute(host.both()) == Error::Ok && host.output.holds(2.0F), "the second");
  second.reset();
  require(before - free_device_memory() < size_t{16} << 20, "the engine stays");
  return "1 GiB engine: one load " + std::to_string(one >> 20) + " MiB in " + fixed(first_time) +
         " ms, two loads " + std::to_string(two >> 20) + " MiB (second in " + fixed(second_time) +
         " ms), none after both are gone";
}

std::string another_gpu() {
  int count = 0;
  require_cuda(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  if (count < 2) throw Skipped("there is one GPU only");
  const auto plan = add_one();
  require_cuda(cudaSetDevice(1), "cudaSetDevice");
  cudaStream_t elsewhere = nullptr;
  require_cuda(cudaStreamCreate(&elsewhere), "stream");
  require_cuda(cudaSetDevice(0), "cudaSetDevice");
  Pair pair(Place::kHost);
  {
    const CallerStreamGuard guard(elsewhere);
    require(plan->execute(pair.both()) == Error::InvalidArgument, "a stream of another GPU");
  }
  require_cuda(cudaSetDevice(1), "cudaSetDevice");
  require(plan->execute(pair.both()) == Error::Ok && pair.output.holds(2.0F), "execute");
  int current = -1;
  require_cuda(cudaGetDevice(&current), "cudaGetDevice");
  cudaStreamDestroy(elsewhere);
  require_cuda(cudaSetDevice(0), "cudaSetDevice");
  require(current == 1, "the current GPU was not restored");
  return "its stream is refused; called from it, the engine runs on its own and it is restored";
}

std::string many_threads() {
  constexpr int kThreads = 16;
  constexpr int kRounds = 200;
  const auto plan = add_one();
  std::vector<std::string> problems(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      try {
        const Stream streams[4] = {Stream(0), Stream(0), Stream(0), Stream(0)};
        std::vector<std::unique_ptr<Pair>> pairs;
        for (int j = 0; j < 4; ++j) pairs.push_back(std::make_unique<Pair>(Place::kDevice, 0.0F));
        for (int round = 0; round < kRounds; ++round) {
          for (size_t j = 0; j < 4; ++j) {
            const CallerStreamGuard guard(streams[j].get());
            require(plan->execute(pairs[j]->both()) == Error::Ok, "execute");
            cudaMemcpyAsync(pairs[j]->input.data(), pairs[j]->output.data(),
                            pairs[j]->input.bytes(), cudaMemcpyDeviceToDevice, streams[j].get());
          }
        }
        for (size_t j = 0; j < 4; ++j) {
          cudaStreamSynchronize(streams[j].get());
          require(pairs[j]->input.holds(static_cast<float>(kRounds)), "wrong result");
        }
      } catch (const std::exception& exception) {
        problems[static_cast<size_t>(i)] = exception.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& problem : problems) require(problem.empty(), problem);
  return "16 threads, 64 streams, 4 contexts, 12800 executes, all in order";
}

std::string leaks() {
  constexpr int kExecutes = 10'000;
  const auto use = [](int executes) {
    for (int done = 0; done < executes;) {
      const auto plan = add_one();
      const Stream stream(0);
      Pair device(Place::kDevice);
      Pair host(Place::kHost);
      for (int i = 0; i < 500; ++i, ++done) {
        const CallerStreamGuard guard(stream.get());
        Pair& pair = i % 2 == 0 ? device : host;
        require(plan->execute(pair.both()) == Error::Ok, "execute");
      }
      cudaStreamSynchronize(stream.get());
      require(device.output.holds(2.0F) && host.output.holds(2.0F), "wrong result");
    }
  };
  use(2'000);
  require_cuda(cudaDeviceSynchronize(), "synchronize");
  const size_t device_before = free_device_memory();
  const size_t host_before = resident_kilobytes();
  use(kExecutes);
  require_cuda(cudaDeviceSynchronize(), "synchronize");
  const auto device = static_cast<long>(device_before) - static_cast<long>(free_device_memory());
  const auto host = static_cast<long>(resident_kilobytes()) - static_cast<long>(host_before);
  const std::string text = std::to_string(kExecutes) + " executes, 20 loads: device memory " +
                           std::to_string(device) + " bytes more, host " + std::to_string(host) +
                           " KiB more";
  require(device <= 0 && host < 1024, text);
  return text;
}

bool run(const char* name, std::string (*check)()) {
  {
    const std::lock_guard<std::mutex> lock(log_mutex);
    logged.clear();
  }
  try {
    const std::string text = check();
    std::printf("ok      %s: %s\n", name, text.c_str());
  } catch (const Skipped& skipped) {
    std::printf("skipped %s: %s\n", name, skipped.what());
  } catch (const std::exception& problem) {
    std::printf("FAILED  %s: %s\n", name, problem.what());
    std::fflush(stdout);
    cudaDeviceSynchronize();
    cudaGetLastError();
    return false;
  }
  std::fflush(stdout);
  return true;
}

int run_all() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    std::fprintf(stderr, "gpu_suite: no GPU that CUDA can use\n");
    return 2;
  }
  et::runtime_init();
  et::register_pal(et::PalImpl::create(keep_errors, __FILE__));
  cudaDeviceProp properties{};
  cudaGetDeviceProperties(&properties, 0);
  int driver = 0;
  int runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  std::printf(
      "%s, compute capability %d.%d, %d multiprocessors, driver CUDA %d.%d, runtime %d.%d\n",
      properties.name, properties.major, properties.minor, properties.multiProcessorCount,
      driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
  bool good = true;
  good &= run("host tensors", host_tensors);
  good &= run("ordering", ordering);
  good &= run("early return", early_return);
  good &= run("early return switched off", no_early_return);
  good &= run("a context is reused after its event", reuse_waits);
  good &= run("streams side by side", streams_side_by_side);
  good &= run("per-thread streams", per_thread_streams);
  good &= run("many threads, many streams", many_threads);
  good &= run("green context confinement", confinement);
  good &= run("early return on a green context", green_early_return);
  good &= run("a green context that is current", green_context_current);
  good &= run("two delegates on one stream", two_delegates);
  good &= run("graph capture", graph_capture);
  good &= run("another GPU", another_gpu);
  good &= run("engine sharing", engine_sharing);
  good &= run("leaks", leaks);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace gpu_suite

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: gpu_suite PLAN_FOLDER\n");
    return 2;
  }
  gpu_suite::plan_folder = argv[1];
  return gpu_suite::run_all();
}
