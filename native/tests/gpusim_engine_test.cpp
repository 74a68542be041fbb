// The simulated TensorRT: it computes, and it notices an execution context that is used wrongly.
#include <NvInfer.h>

#include <cmath>
#include <cstring>
#include <memory>

#include "elements_for_tests.h"
#include "gpusim_matchers.h"
#include "test_plans.h"

using gpusim::FaultKind;
using testing::Contains;
using testing::Each;
using testing::IsEmpty;

namespace {

class SilentLogger final : public nvinfer1::ILogger {
 public:
  void log(Severity, char const*) noexcept override {}
};

class GpusimEngine : public GpusimTest {
 protected:
  void load(const std::string& plan_bytes) {
    static SilentLogger logger;
    runtime_.reset(nvinfer1::createInferRuntime(logger));
    ASSERT_NE(runtime_, nullptr);
    engine_.reset(runtime_->deserializeCudaEngine(plan_bytes.data(), plan_bytes.size()));
    ASSERT_NE(engine_, nullptr);
    context_.reset(engine_->createExecutionContext());
    ASSERT_NE(context_, nullptr);
  }

  void bind_add_one() {
    load(read_plan_file("add_one"));
    input_ = device_floats(96);
    output_ = device_floats(96);
    const std::vector<float> ones(96, 1.0F);
    cudaMemcpy(input_, ones.data(), 96 * sizeof(float), cudaMemcpyHostToDevice);
    EXPECT_TRUE(context_->setTensorAddress("input_0", input_));
    EXPECT_TRUE(context_->setTensorAddress("output_0", output_));
  }

  std::unique_ptr<nvinfer1::IRuntime> runtime_;
  std::unique_ptr<nvinfer1::ICudaEngine> engine_;
  std::unique_ptr<nvinfer1::IExecutionContext> context_;
  float* input_ = nullptr;
  float* output_ = nullptr;
};

}  // namespace

TEST_F(GpusimEngine, ComputesWhatThePlanSays) {
  bind_add_one();
  ASSERT_TRUE(context_->enqueueV3(cudaStreamPerThread));
  cudaStreamSynchronize(cudaStreamPerThread);
  std::vector<float> result(96);
  cudaMemcpy(result.data(), output_, 96 * sizeof(float), cudaMemcpyDeviceToHost);
  EXPECT_THAT(result, Each(2.0F));
  EXPECT_THAT(gpusim::faults(), IsEmpty());
}

TEST_F(GpusimEngine, RefusesABrokenPlan) {
  load(read_plan_file("add_one"));
  std::string plan = read_plan_file("add_one");
  for (const size_t size : {size_t{0}, size_t{7}, size_t{20}, plan.size() - 1}) {
    EXPECT_EQ(runtime_->deserializeCudaEngine(plan.data(), size), nullptr) << size;
  }
  plan[0] = 'X';
  EXPECT_EQ(runtime_->deserializeCudaEngine(plan.data(), plan.size()), nullptr);
}

TEST_F(GpusimEngine, OneContextOnTwoStreamsAtOnceIsAFault) {
  bind_add_one();
  const cudaStream_t first = new_stream();
  const cudaStream_t second = new_stream();
  context_->enqueueV3(first);
  context_->enqueueV3(second);
  EXPECT_THAT(fault_kinds(), Contains(FaultKind::kContextShared));
}

TEST_F(GpusimEngine, OneContextOnTwoStreamsInOrderIsNone) {
  bind_add_one();
  const cudaStream_t first = new_stream();
  const cudaStream_t second = new_stream();
  const cudaEvent_t event = new_event();
  context_->enqueueV3(first);
  cudaEventRecord(event, first);
  cudaStreamWaitEvent(second, event, 0);
  context_->enqueueV3(second);
  cudaDeviceSynchronize();
  EXPECT_THAT(gpusim::faults(), IsEmpty());
}

TEST_F(GpusimEngine, ReconfiguringAContextBeforeItsWorkWasWaitedForIsAFault) {
  bind_add_one();
  context_->enqueueV3(cudaStreamPerThread);
  context_->setTensorAddress("output_0", output_);
  EXPECT_THAT(gpusim::faults(), IsEmpty()) << "nothing changed";
  context_->setTensorAddress("output_0", input_);
  EXPECT_THAT(fault_kinds(), Contains(FaultKind::kLateWait));
}

TEST_F(GpusimEngine, DestroyingABusyContextIsAFault) {
  bind_add_one();
  context_->enqueueV3(cudaStreamPerThread);
  context_.reset();
  EXPECT_THAT(fault_kinds(), Contains(FaultKind::kLateWait));
}

TEST_F(GpusimEngine, DestroyingAnEngineBeforeItsContextsIsAFault) {
  bind_add_one();
  engine_.reset();
  EXPECT_THAT(fault_kinds(), Contains(FaultKind::kLateWait));
}

TEST_F(GpusimEngine, AStreamOfAnotherDeviceIsRefused) {
  gpusim::Settings settings;
  settings.devices = 2;
  gpusim::reset(settings);
  bind_add_one();
  cudaSetDevice(1);
  const cudaStream_t stream = new_stream();
  cudaSetDevice(0);
  EXPECT_FALSE(context_->enqueueV3(stream));
  EXPECT_THAT(fault_kinds(), Contains(FaultKind::kWrongDevice));
}

TEST_F(GpusimEngine, DynamicShapesFollowTheInput) {
  load(read_plan_file("dynamic"));
  EXPECT_FALSE(context_->setInputShape("x", nvinfer1::Dims{2, {9, 4}}));
  EXPECT_EQ(context_->inferShapes(0, nullptr), 2);
  EXPECT_TRUE(context_->setInputShape("x", nvinfer1::Dims{2, {3, 4}}));
  EXPECT_TRUE(context_->setInputShape("scale", nvinfer1::Dims{2, {3, 4}}));
  EXPECT_EQ(context_->inferShapes(0, nullptr), 0);
  EXPECT_EQ(context_->getTensorShape("y").d[0], 3);
}

TEST_F(GpusimEngine, AMissingAddressIsRefused) {
  load(read_plan_file("add_one"));
  EXPECT_FALSE(context_->enqueueV3(cudaStreamPerThread));
}

TEST(GpusimElements, HalfAndBfloatRoundToNearestEven) {
  using nvinfer1::DataType;
  EXPECT_EQ(stored<uint16_t>(DataType::kHALF, 0.0), 0);
  EXPECT_EQ(stored<uint16_t>(DataType::kHALF, 1.0), 0x3C00);
  EXPECT_EQ(stored<uint16_t>(DataType::kHALF, -2.0), 0xC000);
  EXPECT_EQ(stored<uint16_t>(DataType::kHALF, 65504.0), 0x7BFF);
  EXPECT_EQ(stored<uint16_t>(DataType::kHALF, 65520.0), 0x7C00);
  EXPECT_EQ(stored<uint16_t>(DataType::kHALF, std::ldexp(1.0, -24)), 0x0001);
  EXPECT_EQ(stored<uint16_t>(DataType::kHALF, std::ldexp(1.0, -14)), 0x0400);
  EXPECT_EQ(stored<uint16_t>(DataType::kHALF, 2049.0), 0x6800) << "2049 lies between 2048 and 2050";
  EXPECT_EQ(stored<uint16_t>(DataType::kBF16, 1.0), 0x3F80);
  EXPECT_EQ(stored<uint16_t>(DataType::kBF16, 257.0), 0x4380) << "257 lies between 256 and 258";
  EXPECT_EQ(stored<uint8_t>(DataType::kBOOL, 3.0), 1);
  EXPECT_EQ(stored<int64_t>(DataType::kINT64, -5.0), -5);
}
