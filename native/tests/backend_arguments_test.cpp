// execute refuses wrong arguments by name, before anything is enqueued, and works again afterwards.
#include <executorch/extension/cuda/caller_stream.h>

#include "backend_fixture.h"

using executorch::extension::cuda::CallerStreamGuard;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

namespace {

const std::vector<int32_t> kShape = {2, 3, 4, 4};

class BackendArguments : public BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    gpusim::Settings settings;
    settings.devices = 2;
    restart(settings);
    ASSERT_EQ(load_add_one(), Error::Ok);
    input_ = TestTensor::floats(kShape, 1.0F);
    output_ = std::make_unique<TestTensor>(ScalarType::Float, kShape);
  }

  void TearDown() override {
    input_.reset();
    output_.reset();
    BackendTest::TearDown();
  }

  void expect_refused(std::vector<et::EValue*> values, const char* message) {
    clear_log();
    gpusim::clear_calls();
    EXPECT_EQ(execute_values(std::move(values)), Error::InvalidArgument);
    EXPECT_THAT(errors(), HasSubstr(message));
    EXPECT_THAT(errors(), HasSubstr("TensorRTBackend::execute: "));
    EXPECT_THAT(gpusim::calls(), Not(Contains(HasSubstr("Async"))));
    EXPECT_THAT(gpusim::calls(), Not(Contains(HasSubstr("IExecutionContext"))));
    ASSERT_EQ(execute({input_.get(), output_.get()}), Error::Ok);
    EXPECT_THAT(output_->read<float>(), Each(2.0F));
  }

  std::unique_ptr<TestTensor> input_;
  std::unique_ptr<TestTensor> output_;
};

}  // namespace

TEST_F(BackendArguments, TooFewAndTooMany) {
  expect_refused({input_->value()}, "2 arguments, not 1");
  expect_refused({}, "2 arguments, not 0");
  expect_refused({input_->value(), output_->value(), output_->value()}, "2 arguments, not 3");
}

TEST_F(BackendArguments, NoTensor) {
  et::EValue number(int64_t{3});
  expect_refused({&number, output_->value()}, "input input_0 is no tensor");
  expect_refused({input_->value(), &number}, "output output_0 is no tensor");
  expect_refused({nullptr, output_->value()}, "input input_0 is no tensor");
}

TEST_F(BackendArguments, WrongType) {
  TestTensor integers(ScalarType::Int, kShape);
  expect_refused({integers.value(), output_->value()},
                 "input input_0 has scalar type 3, the engine takes 6");
  expect_refused({input_->value(), integers.value()}, "output output_0 has scalar type 3");
}

TEST_F(BackendArguments, WrongRankOrSize) {
  const auto flat = TestTensor::floats({96}, 1.0F);
  expect_refused({flat->value(), output_->value()}, "input input_0 has rank 1, the engine takes 4");
  expect_refused({input_->value(), flat->value()}, "output output_0 has rank 1");
  const auto wide = TestTensor::floats({2, 3, 4, 5}, 1.0F);
  expect_refused({wide->value(), output_->value()},
                 "has shape [2,3,4,5], the engine takes [2,3,4,4] to [2,3,4,4]");
  const auto deep = TestTensor::floats({1, 1, 1, 1, 1, 2, 3, 4, 4}, 1.0F);
  expect_refused({deep->value(), output_->value()}, "input input_0 has rank 9");
}

TEST_F(BackendArguments, SizesOutsideTheBoundsOfTheProfile) {
  ASSERT_EQ(load(blob("dynamic", metadata({"x", "scale"}, {"y"}))), Error::Ok);
  const auto rows = TestTensor::floats({8, 4}, 1.0F);
  const auto more_rows = TestTensor::floats({9, 4}, 1.0F);
  TestTensor output(ScalarType::Float, {9, 4});
  EXPECT_EQ(execute({rows.get(), more_rows.get(), &output}), Error::InvalidArgument);
  EXPECT_THAT(errors(), HasSubstr("input scale has shape [9,4], the engine takes [0,4] to [8,4]"));
  EXPECT_EQ(execute({rows.get(), rows.get(), &output}), Error::Ok);
}

TEST_F(BackendArguments, AnotherLayout) {
  TestTensor channels_last(ScalarType::Float, kShape, Place::kHost, {0, 2, 3, 1});
  expect_refused({channels_last.value(), output_->value()}, "input input_0 is not contiguous");
  expect_refused({input_->value(), channels_last.value()}, "output output_0 is not contiguous");
}

TEST_F(BackendArguments, NoMemory) {
  TestTensor absent(ScalarType::Float, kShape);
  absent.impl().set_data(nullptr);
  expect_refused({absent.value(), output_->value()}, "input input_0 has no memory");
}

TEST_F(BackendArguments, AnOutputWithoutMemory) {
  TestTensor absent(ScalarType::Float, kShape);
  absent.impl().set_data(nullptr);
  EXPECT_EQ(execute_values({input_->value(), absent.value()}), Error::InvalidArgument);
  EXPECT_THAT(errors(), HasSubstr("output output_0 has no memory"));
  EXPECT_EQ(gpusim::live().pending_operations, 0U);
}

TEST_F(BackendArguments, MemoryOfAnotherDevice) {
  cudaSetDevice(1);
  const auto elsewhere = TestTensor::floats(kShape, 1.0F, Place::kDevice);
  cudaSetDevice(0);
  expect_refused({elsewhere->value(), output_->value()},
                 "input input_0: memory is on device 1, the engine on device 0");
  expect_refused({input_->value(), elsewhere->value()}, "output output_0: memory is on device 1");
}

TEST_F(BackendArguments, AStreamOfAnotherDevice) {
  cudaSetDevice(1);
  const cudaStream_t elsewhere = new_stream();
  cudaSetDevice(0);
  {
    const CallerStreamGuard guard(elsewhere);
    gpusim::clear_calls();
    EXPECT_EQ(execute({input_.get(), output_.get()}), Error::InvalidArgument);
    EXPECT_THAT(errors(), HasSubstr("the caller's stream is on device 1, the engine on device 0"));
    EXPECT_THAT(gpusim::calls(), Not(Contains(HasSubstr("Async"))));
  }
  EXPECT_EQ(execute({input_.get(), output_.get()}), Error::Ok);
}

TEST_F(BackendArguments, ADestroyedStream) {
  const cudaStream_t gone = new_stream();
  cudaStreamDestroy(gone);
  const CallerStreamGuard guard(gone);
  EXPECT_EQ(execute({input_.get(), output_.get()}), Error::InvalidArgument);
  gpusim::clear_faults();  // asking for the device of a stream that is gone is the test's doing
}

TEST_F(BackendArguments, NoHandle) {
  et::BackendExecutionContext context;
  EXPECT_EQ(backend().execute(context, nullptr, {}), Error::DelegateInvalidHandle);
  backend().destroy(nullptr);
}

TEST_F(BackendArguments, TheEnginesDeviceIsMadeCurrentAndRestored) {
  ASSERT_EQ(load(add_one_blob(R"(,"device_id":1)")), Error::Ok);
  EXPECT_EQ(execute({input_.get(), output_.get()}), Error::Ok);
  EXPECT_THAT(output_->read<float>(), Each(2.0F));
  int current = -1;
  cudaGetDevice(&current);
  EXPECT_EQ(current, 0);
  EXPECT_EQ(execute_values({}), Error::InvalidArgument);
  cudaGetDevice(&current);
  EXPECT_EQ(current, 0) << "after an error, too";
}
