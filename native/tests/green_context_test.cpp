// The runner's green context: which multiprocessors the delegate's work runs on, and what happens
// when the driver refuses a part.
#include "green_context.h"

#include <executorch/extension/cuda/caller_stream.h>

#include "backend_fixture.h"
#include "problem.h"
#include "stream.h"

using executorch::extension::cuda::CallerStreamGuard;
using linkcheck::runner::GreenContext;
using linkcheck::runner::Problem;
using linkcheck::runner::Stream;
using linkcheck::runner::use_device;
using testing::Each;
using testing::HasSubstr;
using testing::SizeIs;

namespace {

const std::vector<int32_t> kShape = {2, 3, 4, 4};

class GreenContextTest : public BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    gpusim::Settings settings;
    settings.devices = 2;
    settings.sms = 132;
    settings.sm_granularity = 8;
    restart(settings);
  }

  // Runs the loaded engine on `stream` and answers where its kernel ran.
  gpusim::KernelRun run_on(cudaStream_t stream) {
    gpusim::clear_calls();
    const CallerStreamGuard guard(stream);
    const auto input = TestTensor::floats(kShape, 1.0F);
    TestTensor output(ScalarType::Float, kShape);
    EXPECT_EQ(execute({input.get(), &output}), Error::Ok);
    EXPECT_THAT(output.read<float>(), Each(2.0F));
    const auto runs = gpusim::kernel_runs();
    EXPECT_THAT(runs, SizeIs(1));
    return runs.empty() ? gpusim::KernelRun{} : runs.front();
  }

  template <typename Function>
  static Function* driver_function(const char* name, unsigned int version) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult status{};
    EXPECT_EQ(cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &status),
              cudaSuccess);
    return reinterpret_cast<Function*>(found);
  }
  static CUcontext context_of(cudaStream_t stream) {
    CUcontext context = nullptr;
    EXPECT_EQ(driver_function<decltype(cuStreamGetCtx)>("cuStreamGetCtx", 9020)(stream, &context),
              CUDA_SUCCESS);
    return context;
  }
  static void make_current(cudaStream_t stream) {
    EXPECT_EQ(
        driver_function<decltype(cuCtxSetCurrent)>("cuCtxSetCurrent", 4000)(context_of(stream)),
        CUDA_SUCCESS);
  }
  static bool is_current(cudaStream_t stream) {
    CUcontext context = nullptr;
    driver_function<decltype(cuCtxGetCurrent)>("cuCtxGetCurrent", 4000)(&context);
    return context == context_of(stream);
  }

  static std::string problem_of(unsigned int sms) {
    try {
      const Stream stream(sms);
    } catch (const Problem& problem) {
      return problem.what();
    }
    return "";
  }
};

}  // namespace

TEST_F(GreenContextTest, TheDelegatesWorkRunsOnItsMultiprocessorsOnly) {
  ASSERT_EQ(load_add_one(), Error::Ok);
  const Stream green(16);
  EXPECT_EQ(green.sms(), 16U);
  EXPECT_EQ(green.description(), "green context with 16 SM(s)");
  const gpusim::KernelRun confined = run_on(green.get());
  EXPECT_EQ(confined.first_sm, 0);
  EXPECT_EQ(confined.sm_count, 16);
  const Stream ordinary(0);
  EXPECT_EQ(ordinary.description(), "ordinary stream");
  EXPECT_EQ(run_on(ordinary.get()).sm_count, 132);
  EXPECT_EQ(run_on(cudaStreamPerThread).sm_count, 132);
}

TEST_F(GreenContextTest, EarlyReturnMarksItsWorkWithAnEventOfItsOwnContext) {
  options_.set_option("max_contexts", 1);
  ASSERT_EQ(load_add_one(), Error::Ok);
  const Stream green(16);
  const Stream other_green(8);
  const Stream ordinary(0);
  const auto input = TestTensor::floats(kShape, 1.0F, Place::kDevice);
  TestTensor output(ScalarType::Float, kShape, Place::kDevice);
  // One context takes them all in turn, and each change of streams is a change of contexts: an
  // event of another one would be a fault.
  for (const Stream* stream : {&green, &ordinary, &other_green, &green, &green}) {
    const CallerStreamGuard guard(stream->get());
    ASSERT_EQ(execute({input.get(), &output}), Error::Ok);
    EXPECT_GT(gpusim::live().pending_operations, 0U);
  }
  cudaDeviceSynchronize();
  EXPECT_THAT(output.read<float>(), Each(2.0F));
}

TEST_F(GreenContextTest, ItMayGoWhenItsWorkWasWaitedForAndTheDelegateGoesOn) {
  ASSERT_EQ(load_add_one(), Error::Ok);
  const auto input = TestTensor::floats(kShape, 1.0F, Place::kDevice);
  TestTensor output(ScalarType::Float, kShape, Place::kDevice);
  options_.set_option("max_contexts", 1);
  for (int round = 0; round < 3; ++round) {
    const Stream green(16);
    const CallerStreamGuard guard(green.get());
    ASSERT_EQ(execute({input.get(), &output}), Error::Ok);
  }
}

TEST_F(GreenContextTest, ThePerThreadStreamIsRefusedWhileOneIsCurrentAndTheErrorSaysWhatToDo) {
  ASSERT_EQ(load_add_one(), Error::Ok);
  const Stream green(16);
  const auto input = TestTensor::floats(kShape, 1.0F);
  TestTensor output(ScalarType::Float, kShape);
  make_current(green.get());
  gpusim::clear_calls();
  EXPECT_EQ(execute({input.get(), &output}), Error::InvalidArgument);
  EXPECT_THAT(errors(), HasSubstr("choose a stream of the green context with CallerStreamGuard, or "
                                  "make the primary context current with cudaSetDevice()"));
  {
    const CallerStreamGuard guard(cudaStreamPerThread);
    EXPECT_EQ(execute({input.get(), &output}), Error::InvalidArgument) << "chosen, too";
  }
  {
    const CallerStreamGuard guard(green.get());
    EXPECT_EQ(execute({input.get(), &output}), Error::Ok);
  }
  const Stream ordinary(0);
  {
    const CallerStreamGuard guard(ordinary.get());
    EXPECT_EQ(execute({input.get(), &output}), Error::Ok);
  }
  EXPECT_THAT(gpusim::calls(), testing::Not(testing::Contains(std::string("cudaSetDevice"))))
      << "that would make the primary context current";
  EXPECT_TRUE(is_current(green.get()));
  use_device(0);
  EXPECT_EQ(execute({input.get(), &output}), Error::Ok);
}

TEST_F(GreenContextTest, OneThatIsCurrentOnAnotherDeviceIsCurrentAgainAfterwards) {
  ASSERT_EQ(load(add_one_blob(R"(,"device_id":1)")), Error::Ok);
  const Stream green(16);
  make_current(green.get());
  const auto input = TestTensor::floats(kShape, 1.0F);
  TestTensor output(ScalarType::Float, kShape);
  EXPECT_EQ(execute({input.get(), &output}), Error::Ok);
  EXPECT_TRUE(is_current(green.get()));
  use_device(0);
}

TEST_F(GreenContextTest, IsOnTheCurrentDevice) {
  ASSERT_EQ(load(add_one_blob(R"(,"device_id":1)")), Error::Ok);
  use_device(1);
  const Stream stream(8);
  use_device(0);
  const gpusim::KernelRun run = run_on(stream.get());
  EXPECT_EQ(run.device, 1);
  EXPECT_EQ(run.sm_count, 8);
  EXPECT_THROW(use_device(2), Problem);
  cudaGetLastError();
}

TEST_F(GreenContextTest, PartsAreRoundedUpByTheDriver) {
  for (const auto& [wanted, given] : std::vector<std::pair<unsigned int, unsigned int>>{
           {1, 8}, {8, 8}, {9, 16}, {128, 128}, {131, 132}, {132, 132}}) {
    EXPECT_EQ(GreenContext(wanted).sms(), given);
  }
}

TEST_F(GreenContextTest, NothingIsLeftBehind) {
  {
    const Stream stream(8);
    EXPECT_EQ(gpusim::live().green_contexts, 1U);
  }
  EXPECT_EQ(gpusim::leak_report(), "");
}

TEST_F(GreenContextTest, ItsDestructionWaitsForItsWork) {
  ASSERT_EQ(load_add_one(), Error::Ok);
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 4), cudaSuccess);
  {
    const Stream stream(8);
    cudaMemsetAsync(memory, 1, 4, stream.get());
  }
  EXPECT_EQ(gpusim::live().pending_operations, 0U);
  cudaFree(memory);
}

TEST_F(GreenContextTest, MoreThanThereAreIsRefusedWithTheNumberThatThereIs) {
  EXPECT_EQ(problem_of(133), "no green context: there are no 133 SMs of the GPU's 132");
  gpusim::fail_call("cuDevSmResourceSplitByCount", 1, cudaErrorInvalidResourceConfiguration);
  EXPECT_EQ(problem_of(64),
            "no green context: no part with 64 SMs of the GPU's 132: "
            "cudaErrorInvalidResourceConfiguration (915)");
}

TEST_F(GreenContextTest, ADriverWithoutGreenContextsIsNamed) {
  gpusim::Settings settings;
  settings.green_contexts = false;
  restart(settings);
  EXPECT_EQ(problem_of(8),
            "no green context: the driver has no cuDeviceGetDevResource; it must be of CUDA 12.5 "
            "(555) or newer");
  EXPECT_EQ(problem_of(0), "") << "an ordinary stream needs none of it";
}

TEST_F(GreenContextTest, EveryCallThatFailsIsAProblemAndLeavesNothing) {
  gpusim::clear_calls();
  {
    const Stream stream(8);
  }
  std::vector<std::string> calls = gpusim::calls();
  const auto made = std::find(calls.begin(), calls.end(), "cuGreenCtxStreamCreate");
  ASSERT_NE(made, calls.end());
  calls.erase(made + 1, calls.end());  // what follows is the destruction
  ASSERT_THAT(calls, testing::Contains("cuGreenCtxCreate"));
  for (size_t i = 0; i < calls.size(); ++i) {
    SCOPED_TRACE(calls[i]);
    gpusim::fail_call("*", i + 1);
    EXPECT_THAT(problem_of(8), HasSubstr("cudaErrorUnknown"));
    gpusim::clear_failures();
    EXPECT_EQ(gpusim::leak_report(), "");
    cudaGetLastError();
  }
}
