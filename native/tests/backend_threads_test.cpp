// One handle used from several threads: every result is right, and one context is never used by two
// at once.
#include <executorch/extension/cuda/caller_stream.h>

#include <atomic>
#include <thread>

#include "backend_fixture.h"

using executorch::extension::cuda::CallerStreamGuard;
using testing::Each;

namespace {

const std::vector<int32_t> kShape = {2, 3, 4, 4};
constexpr int kThreads = 4;
constexpr int kRuns = 25;

class BackendThreads : public BackendTest {
 protected:
  template <typename Body>
  static void on_threads(Body body) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back(body, i);
    for (std::thread& thread : threads) thread.join();
  }
};

}  // namespace

TEST_F(BackendThreads, HostTensors) {
  ASSERT_EQ(load_add_one(), Error::Ok);
  on_threads([this](int thread) {
    for (int run = 0; run < kRuns; ++run) {
      const auto value = static_cast<float>(thread * 1000 + run);
      const auto input = TestTensor::floats(kShape, value);
      TestTensor output(ScalarType::Float, kShape);
      ASSERT_EQ(execute({input.get(), &output}), Error::Ok);
      ASSERT_THAT(output.read<float>(), Each(value + 1.0F));
    }
  });
}

TEST_F(BackendThreads, DeviceTensorsOnOneStreamEach) {
  ASSERT_EQ(load_add_one(), Error::Ok);
  on_threads([this](int thread) {
    const cudaStream_t stream = new_stream();
    const CallerStreamGuard guard(stream);
    for (int run = 0; run < kRuns; ++run) {
      const auto value = static_cast<float>(thread * 1000 + run);
      const auto input = TestTensor::floats(kShape, value, Place::kDevice);
      TestTensor output(ScalarType::Float, kShape, Place::kDevice);
      ASSERT_EQ(execute({input.get(), &output}), Error::Ok);
      cudaStreamSynchronize(stream);
      ASSERT_THAT(output.read<float>(), Each(value + 1.0F));
    }
  });
}
