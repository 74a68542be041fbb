// execute: results, streams, when it may return early, and shapes. Every test fails on any fault
// the simulator reports.
#include <executorch/extension/cuda/caller_stream.h>

#include "backend_fixture.h"

using executorch::extension::cuda::CallerStreamGuard;
using testing::AnyOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

namespace {

const std::vector<int32_t> kShape = {2, 3, 4, 4};

class BackendExecute : public BackendTest {
 protected:
  static size_t pending() { return gpusim::live().pending_operations; }
};

class BackendExecuteSeeds : public BackendTest, public testing::WithParamInterface<int> {};

template <typename T>
std::vector<T> bits(std::initializer_list<int> values) {
  std::vector<T> result;
  for (const int value : values) result.push_back(static_cast<T>(value));
  return result;
}

}  // namespace

TEST_P(BackendExecuteSeeds, HostTensorsAreReadyOnReturn) {
  gpusim::Settings settings;
  settings.seed = static_cast<uint64_t>(GetParam());
  restart(settings);
  ASSERT_EQ(load_add_one(), Error::Ok);
  for (int run = 0; run < 3; ++run) {
    const auto input = TestTensor::floats(kShape, 1.0F + static_cast<float>(run));
    TestTensor output(ScalarType::Float, kShape);
    ASSERT_EQ(execute({input.get(), &output}), Error::Ok);
    EXPECT_THAT(output.read<float>(), Each(2.0F + static_cast<float>(run)));
    EXPECT_EQ(gpusim::live().pending_operations, 0U);
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, BackendExecuteSeeds, testing::Range(1, 11));

TEST_F(BackendExecute, HostTensorsAreReadyOnReturnUnderAGuardToo) {
  ASSERT_EQ(load_add_one(), Error::Ok);
  const cudaStream_t stream = new_stream();
  const CallerStreamGuard guard(stream);
  const auto input = TestTensor::floats(kShape, 1.0F);
  TestTensor output(ScalarType::Float, kShape);
  ASSERT_EQ(execute({input.get(), &output}), Error::Ok);
  EXPECT_THAT(output.read<float>(), Each(2.0F));
}

TEST_F(BackendExecute, OneHostTensorIsEnoughToWait) {
  ASSERT_EQ(load_add_one(), Error::Ok);
  const CallerStreamGuard guard(new_stream());
  const auto input = TestTensor::floats(kShape, 1.0F, Place::kDevice);
  TestTensor output(ScalarType::Float, kShape, Place::kPinned);
  ASSERT_EQ(execute({input.get(), &output}), Error::Ok);
  EXPECT_THAT(output.read<float>(), Each(2.0F));
  EXPECT_EQ(pending(), 0U);
}

TEST_F(BackendExecute, PinnedHostMemoryIsCopiedAsHostMemoryIs) {
  ASSERT_EQ(load_add_one(), Error::Ok);
  const auto input = TestTensor::floats(kShape, 1.0F, Place::kPinned);
  TestTensor output(ScalarType::Float, kShape, Place::kPinned);
  const CallerStreamGuard guard(new_stream());
  gpusim::clear_calls();
  ASSERT_EQ(execute({input.get(), &output}), Error::Ok);
  const auto calls = gpusim::calls();
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "cudaMemcpyAsync"), 2);
  EXPECT_THAT(output.read<float>(), Each(2.0F));
}

TEST_F(BackendExecute, DeviceTensorsWithoutAGuardAreReadyOnReturn) {
  ASSERT_EQ(load_add_one(), Error::Ok);
  const auto input = TestTensor::floats(kShape, 1.0F, Place::kDevice);
  TestTensor output(ScalarType::Float, kShape, Place::kDevice);
  ASSERT_EQ(execute({input.get(), &output}), Error::Ok);
  EXPECT_EQ(pending(), 0U);
  EXPECT_THAT(output.read<float>(), Each(2.0F));
}

TEST_F(BackendExecute, DeviceTensorsUnderAGuardReturnEarly) {
  ASSERT_EQ(load_add_one(), Error::Ok);
  for (const cudaStream_t stream : {new_stream(), cudaStream_t{nullptr}, cudaStreamPerThread}) {
    const CallerStreamGuard guard(stream);
    const auto input = TestTensor::floats(kShape, 1.0F, Place::kDevice);
    TestTensor output(ScalarType::Float, kShape, Place::kDevice);
    ASSERT_EQ(execute({input.get(), &output}), Error::Ok);
    EXPECT_GT(pending(), 0U);
    cudaStreamSynchronize(stream);
    EXPECT_THAT(output.read<float>(), Each(2.0F));
  }
}

TEST_F(BackendExecute, TheOwnerCanForbidEarlyReturn) {
  options_.set_option("async_return", false);
  ASSERT_EQ(load_add_one(), Error::Ok);
  const CallerStreamGuard guard(new_stream());
  const auto input = TestTensor::floats(kShape, 1.0F, Place::kDevice);
  TestTensor output(ScalarType::Float, kShape, Place::kDevice);
  ASSERT_EQ(execute({input.get(), &output}), Error::Ok);
  EXPECT_EQ(pending(), 0U);
}

TEST_F(BackendExecute, WorkLeftInFlightIsWaitedForBeforeTheContextIsUsedAgain) {
  options_.set_option("max_contexts", 1);
  ASSERT_EQ(load_add_one(), Error::Ok);
  const auto input = TestTensor::floats(kShape, 1.0F, Place::kDevice);
  TestTensor first(ScalarType::Float, kShape, Place::kDevice);
  TestTensor second(ScalarType::Float, kShape, Place::kDevice);
  const cudaStream_t stream = new_stream();
  {
    const CallerStreamGuard guard(stream);
    ASSERT_EQ(execute({input.get(), &first}), Error::Ok);
  }
  cudaStreamDestroy(stream);  // the delegate waits for its event, so the stream may be gone
  const cudaStream_t other = new_stream();
  const CallerStreamGuard guard(other);
  ASSERT_EQ(execute({input.get(), &second}), Error::Ok);
  EXPECT_THAT(first.read<float>(), Each(2.0F));
  cudaStreamSynchronize(other);
  EXPECT_THAT(second.read<float>(), Each(2.0F));
}

TEST_F(BackendExecute, DestroyingWaitsForWorkInFlight) {
  ASSERT_EQ(load_add_one(), Error::Ok);
  const auto input = TestTensor::floats(kShape, 1.0F, Place::kDevice);
  TestTensor output(ScalarType::Float, kShape, Place::kDevice);
  {
    const CallerStreamGuard guard(new_stream());
    ASSERT_EQ(execute({input.get(), &output}), Error::Ok);
  }
  destroy();
  EXPECT_THAT(output.read<float>(), Each(2.0F));
}

TEST_F(BackendExecute, ASteadyStateExecuteAllocatesNoDeviceMemory) {
  ASSERT_EQ(load_add_one(), Error::Ok);
  const auto input = TestTensor::floats(kShape, 1.0F);
  TestTensor output(ScalarType::Float, kShape);
  ASSERT_EQ(execute({input.get(), &output}), Error::Ok);
  gpusim::clear_calls();
  ASSERT_EQ(execute({input.get(), &output}), Error::Ok);
  EXPECT_THAT(gpusim::calls(), Each(Not(AnyOf(HasSubstr("Malloc"), HasSubstr("Free")))));
}

TEST_F(BackendExecute, EveryTypeIsComputedAsItself) {
  const auto check = [this](const char* name, ScalarType dtype, auto in, auto out) {
    SCOPED_TRACE(name);
    using T = typename decltype(in)::value_type;
    ASSERT_EQ(load(blob(std::string("add_one_") + name, metadata({"input_0"}, {"output_0"}))),
              Error::Ok);
    const auto input = TestTensor::of<T>(dtype, {4}, in);
    TestTensor output(dtype, {4});
    ASSERT_EQ(execute({input.get(), &output}), Error::Ok);
    EXPECT_EQ(output.read<T>(), out);
  };
  check("float16", ScalarType::Half, bits<uint16_t>({0, 0x3C00, 0x4000, 0xBC00}),
        bits<uint16_t>({0x3C00, 0x4000, 0x4200, 0}));
  check("bfloat16", ScalarType::BFloat16, bits<uint16_t>({0, 0x3F80, 0x4000, 0xBF80}),
        bits<uint16_t>({0x3F80, 0x4000, 0x4040, 0}));
  check("int32", ScalarType::Int, bits<int32_t>({0, 1, -1, 1 << 30}),
        bits<int32_t>({1, 2, 0, (1 << 30) + 1}));
  check("int64", ScalarType::Long, bits<int64_t>({0, 1, -1, 5}), bits<int64_t>({1, 2, 0, 6}));
  check("int8", ScalarType::Char, bits<int8_t>({0, 1, -1, 126}), bits<int8_t>({1, 2, 0, 127}));
  check("uint8", ScalarType::Byte, bits<uint8_t>({0, 1, 254, 255}), bits<uint8_t>({1, 2, 255, 0}));
  check("bool", ScalarType::Bool, bits<uint8_t>({0, 1, 0, 1}), bits<uint8_t>({1, 1, 1, 1}));
}

TEST_F(BackendExecute, DynamicShapesResizeTheOutput) {
  ASSERT_EQ(load(blob("dynamic", metadata({"x", "scale"}, {"y"}))), Error::Ok);
  TestTensor output(ScalarType::Float, {8, 4});
  for (const int rows : {1, 8, 3, 0, 5}) {
    SCOPED_TRACE(rows);
    const auto x = TestTensor::floats({rows, 4}, 3.0F);
    const auto scale = TestTensor::floats({rows, 4}, 2.0F);
    ASSERT_EQ(execute({x.get(), scale.get(), &output}), Error::Ok);
    EXPECT_THAT(output.sizes(), ElementsAre(rows, 4));
    EXPECT_THAT(output.read<float>(), Each(6.0F));
  }
}

TEST_F(BackendExecute, StagingGrowsWithAndWithoutMemoryPools) {
  for (const bool pools : {true, false}) {
    gpusim::Settings settings;
    settings.memory_pools = pools;
    destroy();
    restart(settings);
    ASSERT_EQ(load(blob("dynamic", metadata({"x", "scale"}, {"y"}))), Error::Ok);
    TestTensor output(ScalarType::Float, {8, 4});
    for (const int rows : {1, 8, 8}) {
      const auto x = TestTensor::floats({rows, 4}, 3.0F);
      const auto scale = TestTensor::floats({rows, 4}, 2.0F);
      ASSERT_EQ(execute({x.get(), scale.get(), &output}), Error::Ok);
      EXPECT_THAT(output.read<float>(), Each(6.0F));
    }
    destroy();
    EXPECT_EQ(gpusim::leak_report(), "");
  }
}

TEST_F(BackendExecute, AnOutputThatCannotTakeTheShapeIsAnError) {
  ASSERT_EQ(load(blob("dynamic", metadata({"x", "scale"}, {"y"}))), Error::Ok);
  const auto x = TestTensor::floats({8, 4}, 3.0F);
  const auto scale = TestTensor::floats({8, 4}, 2.0F);
  TestTensor small(ScalarType::Float, {2, 4});
  EXPECT_NE(execute({x.get(), scale.get(), &small}), Error::Ok);
  EXPECT_THAT(errors(), HasSubstr("output y cannot take shape [8,4]"));
  EXPECT_EQ(pending(), 0U) << "the copies of the inputs must be over";
}

TEST_F(BackendExecute, AScalarOutputMayStandForAVectorOfOne) {
  ASSERT_EQ(load(blob("scalar", metadata({"input_0"}, {"output_0"}))), Error::Ok);
  const auto input = TestTensor::floats({1}, 1.0F);
  TestTensor output(ScalarType::Float, {});
  ASSERT_EQ(execute({input.get(), &output}), Error::Ok);
  EXPECT_THAT(output.read<float>(), ElementsAre(2.0F));
}

TEST_F(BackendExecute, ManagedMemoryIsUsedInPlace) {
  ASSERT_EQ(load_add_one(), Error::Ok);
  const auto input = TestTensor::floats(kShape, 1.0F, Place::kManaged);
  TestTensor output(ScalarType::Float, kShape, Place::kManaged);
  gpusim::clear_calls();
  ASSERT_EQ(execute({input.get(), &output}), Error::Ok);
  EXPECT_THAT(gpusim::calls(), Not(Contains(std::string("cudaMemcpyAsync"))));
  EXPECT_THAT(output.read<float>(), Each(2.0F));
}

TEST_F(BackendExecute, AnIntegratedGpuReadsHostMemoryInPlaceOnlyIfItCan) {
  for (const bool can : {true, false}) {
    gpusim::Settings settings;
    settings.integrated = true;
    settings.pageable_access = can;
    destroy();
    restart(settings);
    ASSERT_EQ(load_add_one(), Error::Ok);
    const auto input = TestTensor::floats(kShape, 1.0F);
    TestTensor output(ScalarType::Float, kShape);
    gpusim::clear_calls();
    const CallerStreamGuard guard(new_stream());
    ASSERT_EQ(execute({input.get(), &output}), Error::Ok);
    EXPECT_THAT(output.read<float>(), Each(2.0F)) << "ready on return in either case";
    if (can) {
      EXPECT_THAT(gpusim::calls(), Not(Contains(std::string("cudaMemcpyAsync"))));
    } else {
      EXPECT_THAT(gpusim::calls(), Contains(std::string("cudaMemcpyAsync")));
    }
  }
}
