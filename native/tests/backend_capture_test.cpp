// A caller's stream that is being captured into a CUDA graph: what is captured, what each launch
// computes, and what cannot be captured.
#include <executorch/extension/cuda/caller_stream.h>

#include "backend_fixture.h"

using executorch::extension::cuda::CallerStreamGuard;
using testing::Each;
using testing::HasSubstr;

namespace {

const std::vector<int32_t> kShape = {2, 3, 4, 4};

class BackendCapture : public BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    stream_ = new_stream();
    input_ = TestTensor::floats(kShape, 1.0F, Place::kDevice);
    output_ = std::make_unique<TestTensor>(ScalarType::Float, kShape, Place::kDevice);
  }
  void TearDown() override {
    cudaDeviceSynchronize();
    input_.reset();
    output_.reset();
    BackendTest::TearDown();
  }

  Error run() {
    const CallerStreamGuard guard(stream_);
    return execute({input_.get(), output_.get()});
  }
  cudaGraphExec_t capture(cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
    EXPECT_EQ(cudaStreamBeginCapture(stream_, mode), cudaSuccess);
    EXPECT_EQ(run(), Error::Ok);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
    cudaGraphExec_t exec = nullptr;
    EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    cudaGraphDestroy(graph);
    return exec;
  }
  void refuse(Error expected, const char* message, Place output_place = Place::kDevice) {
    TestTensor output(ScalarType::Float, kShape, output_place);
    EXPECT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
    {
      const CallerStreamGuard guard(stream_);
      EXPECT_EQ(execute({input_.get(), &output}), expected);
    }
    EXPECT_THAT(errors(), HasSubstr(message));
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess) << "the capture is not broken";
    cudaGraphDestroy(graph);
  }

  cudaStream_t stream_ = nullptr;
  std::unique_ptr<TestTensor> input_;
  std::unique_ptr<TestTensor> output_;
};

}  // namespace

TEST_F(BackendCapture, EachLaunchComputesAnew) {
  ASSERT_EQ(load_add_one(), Error::Ok);
  ASSERT_EQ(run(), Error::Ok);  // as TensorRT asks: once before, with the same shapes
  const cudaGraphExec_t graph = capture();
  for (int i = 1; i <= 3; ++i) {
    const std::vector<float> values(96, static_cast<float>(i));
    input_->write(values.data(), values.size() * sizeof(float));
    cudaGraphLaunch(graph, stream_);
    cudaStreamSynchronize(stream_);
    EXPECT_THAT(output_->read<float>(), Each(static_cast<float>(i) + 1.0F));
  }
  cudaGraphExecDestroy(graph);
}

TEST_F(BackendCapture, NothingRunsWhileItIsCaptured) {
  ASSERT_EQ(load_add_one(), Error::Ok);
  ASSERT_EQ(run(), Error::Ok);
  cudaStreamSynchronize(stream_);
  const size_t before = gpusim::kernel_runs().size();
  const cudaGraphExec_t graph = capture();
  cudaStreamSynchronize(stream_);
  EXPECT_EQ(gpusim::kernel_runs().size(), before);
  cudaGraphExecDestroy(graph);
}

TEST_F(BackendCapture, AGraphsContextIsNobodyElses) {
  ASSERT_EQ(load_add_one(), Error::Ok);
  ASSERT_EQ(run(), Error::Ok);
  const cudaGraphExec_t first = capture();
  ASSERT_EQ(run(), Error::Ok) << "the graph has the context, this takes another";
  const cudaGraphExec_t second = capture(cudaStreamCaptureModeRelaxed);
  const cudaGraphExec_t third = capture(cudaStreamCaptureModeThreadLocal);
  cudaStreamSynchronize(stream_);
  for (const cudaGraphExec_t graph : {first, second, third}) {
    cudaGraphLaunch(graph, stream_);
    ASSERT_EQ(run(), Error::Ok);
  }
  cudaStreamSynchronize(stream_);
  EXPECT_THAT(output_->read<float>(), Each(2.0F));
  for (const cudaGraphExec_t graph : {first, second, third}) cudaGraphExecDestroy(graph);
}

TEST_F(BackendCapture, ItMayBeginWhileEarlierWorkIsInFlight) {
  options_.set_option("max_contexts", 1);
  ASSERT_EQ(load_add_one(), Error::Ok);
  ASSERT_EQ(run(), Error::Ok);
  EXPECT_GT(gpusim::live().pending_operations, 0U);
  const cudaGraphExec_t graph = capture();
  cudaGraphLaunch(graph, stream_);
  cudaStreamSynchronize(stream_);
  EXPECT_THAT(output_->read<float>(), Each(2.0F));
  cudaGraphExecDestroy(graph);
}

TEST_F(BackendCapture, DestructionWaitsForLaunches) {
  ASSERT_EQ(load_add_one(), Error::Ok);
  ASSERT_EQ(run(), Error::Ok);
  const cudaGraphExec_t graph = capture();
  cudaGraphLaunch(graph, stream_);
  destroy();
  EXPECT_EQ(gpusim::live().pending_operations, 0U);
  cudaGraphExecDestroy(graph);
}

TEST_F(BackendCapture, HostTensorsAreRefusedAndTheCaptureGoesOn) {
  ASSERT_EQ(load_add_one(), Error::Ok);
  ASSERT_EQ(run(), Error::Ok);
  refuse(Error::NotSupported, "a graph takes tensors in device memory only", Place::kHost);
}

TEST_F(BackendCapture, ARefusedCaptureCostsNoContext) {
  options_.set_option("max_contexts", 1);
  ASSERT_EQ(load_add_one(), Error::Ok);
  ASSERT_EQ(run(), Error::Ok);
  for (int i = 0; i < 3; ++i) {
    refuse(Error::NotSupported, "a graph takes tensors in device memory only", Place::kHost);
  }
  ASSERT_EQ(run(), Error::Ok);
  EXPECT_EQ(gpusim::live().contexts, 1U);
  const cudaGraphExec_t graph = capture();
  ASSERT_EQ(run(), Error::Ok);
  EXPECT_EQ(gpusim::live().contexts, 2U) << "one is the graph's";
  cudaStreamSynchronize(stream_);
  cudaGraphExecDestroy(graph);
}

TEST_F(BackendCapture, WithoutEarlyReturnItIsRefused) {
  options_.set_option("async_return", false);
  ASSERT_EQ(load_add_one(), Error::Ok);
  refuse(Error::NotSupported, "leave async_return on");
}

TEST_F(BackendCapture, ACaptureThatHasFailedIsNamed) {
  ASSERT_EQ(load_add_one(), Error::Ok);
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_NE(cudaStreamSynchronize(stream_), cudaSuccess);
  cudaGetLastError();
  EXPECT_EQ(run(), Error::InvalidArgument);
  EXPECT_THAT(errors(), HasSubstr("in a capture that has failed"));
  cudaGraph_t graph = nullptr;
  cudaStreamEndCapture(stream_, &graph);
  cudaGetLastError();
}
