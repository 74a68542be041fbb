// What one execute costs, on a real GPU with the stand-in for TensorRT. Prints Markdown tables.
//
//     execute_benchmark PLAN_FOLDER
#include <NvInfer.h>
#include <executorch/extension/cuda/caller_stream.h>
#include <executorch/runtime/platform/runtime.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "loaded_plan.h"
#include "stream.h"
#include "upstream_path.h"

namespace benchmark {
namespace {

using executorch::extension::cuda::CallerStreamGuard;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using gpu_suite::FloatTensor;
using gpu_suite::LoadedPlan;
using gpu_suite::Place;
using linkcheck::runner::Stream;
using Clock = std::chrono::steady_clock;

std::string plan_folder;

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(std::string(what) + " failed");
}

double microseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

class Logger final : public nvinfer1::ILogger {
  void log(Severity, nvinfer1::AsciiChar const*) noexcept override {}
};

struct Percentiles {
  double low;
  double median;
  double high;
};

// Of `samples`, sorted here: the 10th, 50th and 90th of a hundred.
Percentiles percentiles(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const size_t count = samples.size();
  return {samples[count / 10], samples[count / 2], samples[count * 9 / 10]};
}

// Host time of `call` alone: the stream is idle before each, so no call waits for the GPU.
std::vector<double> time_calls(cudaStream_t stream, int count, const std::function<void()>& call) {
  std::vector<double> samples;
  samples.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    const auto start = Clock::now();
    call();
    samples.push_back(microseconds(Clock::now() - start));
    cudaStreamSynchronize(stream);
  }
  return samples;
}

void host_time() {
  constexpr int kRounds = 20;
  constexpr int kCalls = 1000;
  const std::string bytes = gpu_suite::read_plan(plan_folder, "add_one");
  static auto* logger = new Logger();
  const std::unique_ptr<nvinfer1::IRuntime> runtime(nvinfer1::createInferRuntime(*logger));
  const std::unique_ptr<nvinfer1::ICudaEngine> engine(
      runtime->deserializeCudaEngine(bytes.data(), bytes.size()));
  const std::unique_ptr<nvinfer1::IExecutionContext> context(engine->createExecutionContext());
  FloatTensor input({2, 3, 4, 4}, Place::kDevice, 1.0F);
  FloatTensor output({2, 3, 4, 4}, Place::kDevice);
  EValue* values[] = {input.value(), output.value()};
  context->setTensorAddress("input_0", input.data());
  context->setTensorAddress("output_0", output.data());
  const LoadedPlan ours(bytes, {"input_0"}, {"output_0"});
  UpstreamPath upstream(bytes);
  const Stream stream(0);
  const CallerStreamGuard guard(stream.get());
  cudaEvent_t event = nullptr;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  cudaPointerAttributes attributes{};
  cudaStreamCaptureStatus capture{};
  int device = 0;
  struct Line {
    const char* name;
    std::function<void()> call;
    std::vector<double> samples;
  };
  Line lines[] = {
      {"bare enqueueV3", [&] { require(context->enqueueV3(stream.get()), "enqueueV3"); }, {}},
      {"execute of the delegate",
       [&] { require(ours.execute_values(values, 2) == Error::Ok, "execute"); },
       {}},
      {"upstream's calls", [&] { require(upstream.execute(values), "execute"); }, {}},
      {"of these: cudaEventRecord", [&] { cudaEventRecord(event, stream.get()); }, {}},
      {"cudaEventSynchronize of a finished event", [&] { cudaEventSynchronize(event); }, {}},
      {"cudaPointerGetAttributes",
       [&] { cudaPointerGetAttributes(&attributes, input.data()); },
       {}},
      {"cudaStreamIsCapturing", [&] { cudaStreamIsCapturing(stream.get(), &capture); }, {}},
      {"cudaStreamGetDevice", [&] { cudaStreamGetDevice(stream.get(), &device); }, {}},
      {"cudaGetDevice", [&] { cudaGetDevice(&device); }, {}},
      {"nothing (the clock)", [] {}, {}},
  };
  // In turns, so that a change of the machine's speed meets all of them.
  for (int round = 0; round < kRounds + 1; ++round) {
    for (Line& line : lines) {
      const auto samples = time_calls(stream.get(), kCalls, line.call);
      if (round > 0) line.samples.insert(line.samples.end(), samples.begin(), samples.end());
    }
  }
  std::printf("\n## Host time of one call, device-resident tensors, microseconds\n\n");
  std::printf("| call | 10 %% | median | 90 %% | median above bare |\n|---|---|---|---|---|\n");
  const double bare = percentiles(lines[0].samples).median;
  for (size_t i = 0; i < std::size(lines); ++i) {
    const Percentiles times = percentiles(lines[i].samples);
    std::printf("| %s | %.2f | %.2f | %.2f |", lines[i].name, times.low, times.median, times.high);
    if (i < 3) std::printf(" %.2f |\n", times.median - bare);
    if (i >= 3) std::printf(" |\n");
  }
  cudaEventDestroy(event);
}

// Executes a second of `threads` threads, each on a stream and tensors of its own.
double throughput(int threads, const std::function<bool(EValue**)>& execute) {
  constexpr auto kDuration = std::chrono::milliseconds(1000);
  std::atomic<bool> stop{false};
  std::atomic<bool> failed{false};
  std::atomic<long> total{0};
  std::atomic<int> ready{0};
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([&] {
      const Stream stream(0);
      FloatTensor input({4096}, Place::kDevice, 1.0F);
      FloatTensor output({4096}, Place::kDevice);
      EValue* values[] = {input.value(), output.value()};
      const CallerStreamGuard guard(stream.get());
      for (int warm = 0; warm < 20; ++warm) execute(values);
      ++ready;
      while (ready < threads) std::this_thread::yield();
      long count = 0;
      while (!stop) {
        if (!execute(values)) failed = true;
        ++count;
      }
      cudaStreamSynchronize(stream.get());
      total += count;
      if (!output.holds(17.0F)) failed = true;
    });
  }
  while (ready < threads) std::this_thread::yield();
  std::this_thread::sleep_for(kDuration);
  stop = true;
  for (std::thread& worker : workers) worker.join();
  require(!failed, "an execute");
  return static_cast<double>(total) / std::chrono::duration<double>(kDuration).count();
}

// What the stand-in and the driver can do: a context a thread, made at its first call, and nothing
// but the enqueue and the wait for the one before it.
class BareEngine {
 public:
  explicit BareEngine(const std::string& plan) {
    static auto* logger = new Logger();
    runtime_.reset(nvinfer1::createInferRuntime(*logger));
    engine_.reset(runtime_->deserializeCudaEngine(plan.data(), plan.size()));
  }
  bool execute(EValue** values) const {
    thread_local std::unique_ptr<nvinfer1::IExecutionContext> context;
    const cudaStream_t stream = *executorch::extension::cuda::getCallerStream();
    if (context == nullptr) {
      context.reset(engine_->createExecutionContext());
      context->setTensorAddress("x", values[0]->toTensor().mutable_data_ptr());
      context->setTensorAddress("y", values[1]->toTensor().mutable_data_ptr());
    } else if (cudaStreamSynchronize(stream) != cudaSuccess) {
      return false;
    }
    return context->enqueueV3(stream);
  }

 private:
  std::unique_ptr<nvinfer1::IRuntime> runtime_;
  std::unique_ptr<nvinfer1::ICudaEngine> engine_;
};

void throughputs() {
  const std::string bytes = gpu_suite::read_plan(plan_folder, "chain");
  std::printf(
      "\n## Executes a second on one engine (16 small kernels each), a stream a thread\n\n");
  std::printf(
      "| threads | max_contexts 8 | max_contexts 4 | max_contexts 1 | upstream's calls | bare "
      "enqueueV3 |\n");
  std::printf("|---|---|---|---|---|---|\n");
  for (const int threads : {1, 2, 4, 8}) {
    std::printf("| %d |", threads);
    for (const int contexts : {8, 4, 1}) {
      gpu_suite::Options options;
      options.max_contexts = contexts;
      const LoadedPlan plan(bytes, {"x"}, {"y"}, options);
      std::printf(" %.0f |", throughput(threads, [&](EValue** values) {
                    return plan.execute_values(values, 2) == Error::Ok;
                  }));
    }
    UpstreamPath upstream(bytes);
    std::printf(" %.0f |",
                throughput(threads, [&](EValue** values) { return upstream.execute(values); }));
    const BareEngine bare(bytes);
    std::printf(" %.0f |\n",
                throughput(threads, [&](EValue** values) { return bare.execute(values); }));
    std::fflush(stdout);
  }
}

void host_staged() {
  const std::string bytes = gpu_suite::read_plan(plan_folder, "vector");
  const LoadedPlan plan(bytes, {"x"}, {"y"});
  std::printf(
      "\n## Host-staged execute against its two copies and its kernel alone, microseconds\n\n");
  std::printf(
      "| bytes each way | execute | copies | copies and kernel | execute / copies and kernel |\n");
  std::printf("|---|---|---|---|---|\n");
  for (const int32_t count : {1 << 10, 1 << 14, 1 << 18, 1 << 22, 1 << 25}) {
    FloatTensor input({count}, Place::kHost, 1.0F);
    FloatTensor output({count}, Place::kHost);
    FloatTensor on_device({count}, Place::kDevice);
    FloatTensor result({count}, Place::kDevice);
    EValue* values[] = {input.value(), output.value()};
    EValue* device_values[] = {on_device.value(), result.value()};
    const Stream stream(0);
    const CallerStreamGuard guard(stream.get());
    const auto copy_in = [&] {
      cudaMemcpyAsync(on_device.data(), input.data(), input.bytes(), cudaMemcpyHostToDevice,
                      stream.get());
    };
    const auto copy_out = [&] {
      cudaMemcpyAsync(output.data(), result.data(), output.bytes(), cudaMemcpyDeviceToHost,
                      stream.get());
      cudaStreamSynchronize(stream.get());
    };
    std::vector<double> times[3];
    const int rounds = count > (1 << 20) ? 20 : 200;
    for (int round = 0; round < rounds + 3; ++round) {
      const std::function<void()> calls[] = {
          [&] { require(plan.execute_values(values, 2) == Error::Ok, "execute"); },
          [&] {
            copy_in();
            copy_out();
          },
          [&] {
            copy_in();
            require(plan.execute_values(device_values, 2) == Error::Ok, "execute");
            copy_out();
          }};
      for (size_t i = 0; i < 3; ++i) {
        const auto start = Clock::now();
        calls[i]();
        if (round >= 3) times[i].push_back(microseconds(Clock::now() - start));
      }
    }
    const double medians[] = {percentiles(times[0]).median, percentiles(times[1]).median,
                              percentiles(times[2]).median};
    std::printf("| %zu | %.1f | %.1f | %.1f | %.2f |\n", input.bytes(), medians[0], medians[1],
                medians[2], medians[0] / medians[2]);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace benchmark

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: execute_benchmark PLAN_FOLDER\n");
    return 2;
  }
  benchmark::plan_folder = argv[1];
  executorch::runtime::runtime_init();
  try {
    benchmark::host_time();
    benchmark::throughputs();
    benchmark::host_staged();
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "execute_benchmark: %s\n", problem.what());
    return 1;
  }
  return 0;
}
