// Which calls on one engine run side by side: contexts by stream, their number, and what happens
// when all are in use.
#include <executorch/extension/cuda/caller_stream.h>

#include <atomic>
#include <future>
#include <random>
#include <thread>

#include "backend_fixture.h"

using executorch::extension::cuda::CallerStreamGuard;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

namespace {

const std::vector<int32_t> kShape = {2, 3, 4, 4};

class BackendContexts : public BackendTest {
 protected:
  // One device-resident execute on `stream`, left in flight.
  struct Run {
    std::unique_ptr<TestTensor> input = TestTensor::floats(kShape, 1.0F, Place::kDevice);
    TestTensor output{ScalarType::Float, kShape, Place::kDevice};
  };
  Error start(Run& run, cudaStream_t stream) {
    const CallerStreamGuard guard(stream);
    return execute({run.input.get(), &run.output});
  }
  static size_t contexts() { return gpusim::live().contexts; }
};

class BackendContextsSeeds : public BackendContexts, public testing::WithParamInterface<int> {};

}  // namespace

TEST_F(BackendContexts, StreamsDoNotWaitForEachOther) {
  ASSERT_EQ(load_add_one(), Error::Ok);
  EXPECT_EQ(contexts(), 1U);
  Run runs[4];
  for (Run& run : runs) {
    gpusim::clear_calls();
    ASSERT_EQ(start(run, new_stream()), Error::Ok);
    EXPECT_THAT(gpusim::calls(), Not(Contains(HasSubstr("Synchronize"))));
  }
  EXPECT_EQ(contexts(), 4U);
  cudaDeviceSynchronize();
  for (Run& run : runs) EXPECT_THAT(run.output.read<float>(), Each(2.0F));
}

TEST_F(BackendContexts, AStreamKeepsItsContext) {
  ASSERT_EQ(load_add_one(), Error::Ok);
  const cudaStream_t streams[] = {new_stream(), new_stream()};
  Run runs[2];
  for (int round = 0; round < 5; ++round) {
    for (int i : {0, 1}) ASSERT_EQ(start(runs[i], streams[i]), Error::Ok);
  }
  EXPECT_EQ(contexts(), 2U);
  gpusim::clear_calls();
  ASSERT_EQ(start(runs[0], streams[0]), Error::Ok);
  EXPECT_THAT(gpusim::calls(), Not(Contains(HasSubstr("IExecutionContext::set"))))
      << "its context knows shapes and addresses already";
  cudaDeviceSynchronize();
}

TEST_F(BackendContexts, OverTheLimitTheOneUsedLongestAgoIsTakenAfterItsEvent) {
  options_.set_option("max_contexts", 2);
  ASSERT_EQ(load_add_one(), Error::Ok);
  Run runs[3];
  for (int i : {0, 1}) ASSERT_EQ(start(runs[i], new_stream()), Error::Ok);
  gpusim::clear_calls();
  ASSERT_EQ(start(runs[2], new_stream()), Error::Ok);
  EXPECT_EQ(contexts(), 2U);
  EXPECT_THAT(gpusim::calls(), Contains(std::string("cuEventQuery")));
  EXPECT_THAT(runs[0].output.read<float>(), Each(2.0F)) << "it was waited for";
  cudaDeviceSynchronize();
  for (Run& run : runs) EXPECT_THAT(run.output.read<float>(), Each(2.0F));
}

TEST_F(BackendContexts, EveryThreadsDefaultStreamIsAStreamOfItsOwn) {
  ASSERT_EQ(load_add_one(), Error::Ok);
  Run mine;
  ASSERT_EQ(start(mine, cudaStreamPerThread), Error::Ok);
  std::thread other([this] {
    Run run;
    ASSERT_EQ(start(run, cudaStreamPerThread), Error::Ok);
    cudaStreamSynchronize(cudaStreamPerThread);
  });
  other.join();
  EXPECT_EQ(contexts(), 2U);
  cudaStreamSynchronize(cudaStreamPerThread);
}

TEST_F(BackendContexts, WhenTheGpuHasNoRoomForAnotherTheyAreShared) {
  ASSERT_EQ(load_add_one(), Error::Ok);
  Run first;
  Run second;
  ASSERT_EQ(start(first, new_stream()), Error::Ok);
  gpusim::fail_call("ICudaEngine::createExecutionContext", 1);
  ASSERT_EQ(start(second, new_stream()), Error::Ok);
  EXPECT_EQ(contexts(), 1U);
  EXPECT_THAT(infos(), HasSubstr("no more than 1 execution contexts"));
  cudaDeviceSynchronize();
  EXPECT_THAT(first.output.read<float>(), Each(2.0F));
  EXPECT_THAT(second.output.read<float>(), Each(2.0F));
}

// A context is in use only while a call is inside execute, so the calls must meet there: the second
// one comes while the first is held up in the simulator's call of a driver function.
TEST_F(BackendContexts, WhenAllAreInUseTheOptionSaysWaitOrError) {
  for (const bool waits : {true, false}) {
    options_.set_option("max_contexts", 1);
    options_.set_option("on_exhausted", waits ? "wait" : "error");
    ASSERT_EQ(load_add_one(), Error::Ok);
    Run first;
    Run second;
    const cudaStream_t streams[] = {new_stream(), new_stream()};
    gpusim::hold_call("IExecutionContext::enqueueV3");
    auto held = std::async(std::launch::async, [&] { return start(first, streams[0]); });
    gpusim::wait_for_held_call();
    auto other = std::async(std::launch::async, [&] { return start(second, streams[1]); });
    if (waits) {
      EXPECT_EQ(other.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
    } else {
      EXPECT_EQ(other.get(), Error::OutOfResources) << "at once, while the first is inside";
      EXPECT_THAT(errors(), HasSubstr("all 1 execution contexts are in use"));
    }
    gpusim::release_held_call();
    EXPECT_EQ(held.get(), Error::Ok);
    if (waits) {
      EXPECT_EQ(other.get(), Error::Ok);
    }
    cudaDeviceSynchronize();
    EXPECT_THAT(first.output.read<float>(), Each(2.0F));
  }
}

TEST_F(BackendContexts, NoLockIsHeldWhileTheGpuIsWaitedFor) {
  ASSERT_EQ(load_add_one(), Error::Ok);
  const auto input = TestTensor::floats(kShape, 1.0F);
  TestTensor output(ScalarType::Float, kShape);
  gpusim::hold_call("cudaStreamSynchronize");
  auto waiting = std::async(std::launch::async, [&] { return execute({input.get(), &output}); });
  gpusim::wait_for_held_call();
  Run other;
  EXPECT_EQ(start(other, new_stream()), Error::Ok) << "while the first waits for its results";
  gpusim::release_held_call();
  EXPECT_EQ(waiting.get(), Error::Ok);
  cudaDeviceSynchronize();
  EXPECT_THAT(other.output.read<float>(), Each(2.0F));
}

// 16 threads, 64 streams. Everybody uses one handle; everybody destroys streams with work in flight
// and loads and destroys handles of their own, which share the engine with the first.
TEST_P(BackendContextsSeeds, ManyThreadsManyStreamsRandomDestruction) {
  constexpr int kThreads = 16;
  constexpr int kStreamsEach = 4;
  constexpr int kSteps = 40;
  gpusim::Settings settings;
  settings.seed = static_cast<uint64_t>(GetParam());
  restart(settings);
  ASSERT_EQ(load_add_one(), Error::Ok);
  std::atomic<int> wrong{0};
  const auto work = [&](int thread) {
    std::mt19937 random(static_cast<uint32_t>(GetParam() * 100 + thread));
    struct Lane {
      cudaStream_t stream = nullptr;
      std::unique_ptr<Run> run;
      int steps = 0;
    };
    std::vector<Lane> lanes(kStreamsEach);
    for (Lane& lane : lanes) {
      cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking);
      lane.run = std::make_unique<Run>();
    }
    et::DelegateHandle* own = nullptr;
    for (int step = 0; step < kSteps; ++step) {
      Lane& lane = lanes[random() % kStreamsEach];
      switch (random() % 8) {
        case 0:  // the stream goes, its work does not
          cudaStreamSynchronize(lane.stream);
          [[fallthrough]];
        case 1: {
          // The next work on these tensors is ordered after the old stream's by an event.
          cudaEvent_t event = nullptr;
          cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
          cudaEventRecord(event, lane.stream);
          cudaStreamDestroy(lane.stream);
          cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking);
          cudaStreamWaitEvent(lane.stream, event, 0);
          cudaEventDestroy(event);
          break;
        }
        case 2:
          if (own != nullptr) {
            backend().destroy(own);
            own = nullptr;
          } else {
            own = load_one_more(add_one_blob());
            if (own == nullptr) ++wrong;
          }
          break;
        default: {
          const CallerStreamGuard guard(lane.stream);
          et::DelegateHandle* target = own != nullptr && random() % 2 == 0 ? own : handle();
          // Per-stream order: out = in + 1, then in = out, without a wait in between.
          if (execute_on(target, {lane.run->input.get(), &lane.run->output}) != Error::Ok) ++wrong;
          cudaMemcpyAsync(lane.run->input->data(), lane.run->output.data(),
                          lane.run->output.impl().nbytes(), cudaMemcpyDeviceToDevice, lane.stream);
          ++lane.steps;
        }
      }
    }
    if (own != nullptr) backend().destroy(own);
    for (Lane& lane : lanes) {
      cudaStreamSynchronize(lane.stream);
      cudaStreamDestroy(lane.stream);
      if (lane.run->input->read<float>().front() != 1.0F + static_cast<float>(lane.steps)) ++wrong;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(gpusim::live().engines, 1U);
  EXPECT_LE(contexts(), 4U);
}
INSTANTIATE_TEST_SUITE_P(Seeds, BackendContextsSeeds, testing::Range(1, 6));
