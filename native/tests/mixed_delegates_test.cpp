// Two delegates in turn on one caller stream, each working on what the other made, without any wait
// in between. Linked with a copy delegate that has a caller-stream library of its own, this program
// fails: mixed_delegates_test.py sees to that.
#include <executorch/extension/cuda/caller_stream.h>

#include "backend_fixture.h"

using executorch::extension::cuda::CallerStreamGuard;
using testing::Each;

namespace {

const std::vector<int32_t> kShape = {2, 3, 4, 4};

class MixedDelegates : public BackendTest, public testing::WithParamInterface<int> {};

}  // namespace

TEST_P(MixedDelegates, AreOrderedByTheOneStreamAlone) {
  gpusim::Settings settings;
  settings.seed = static_cast<uint64_t>(GetParam());
  restart(settings);
  ASSERT_EQ(load_add_one(), Error::Ok);
  const auto* copier = et::get_backend_class("CopyBackend");
  ASSERT_NE(copier, nullptr);
  et::BackendInitContext init_context(allocator_);
  et::FreeableBuffer nothing;
  et::DelegateHandle* copy = copier->init(init_context, &nothing, {}).get();
  const auto data = TestTensor::floats(kShape, 0.0F, Place::kDevice);
  TestTensor sum(ScalarType::Float, kShape, Place::kDevice);
  const cudaStream_t stream = new_stream();
  {
    const CallerStreamGuard guard(stream);
    // A runner's own check; it too must read the one library.
    ASSERT_EQ(executorch::extension::cuda::getCallerStream(), stream);
    gpusim::clear_calls();
    for (int i = 0; i < 5; ++i) {
      ASSERT_EQ(execute({data.get(), &sum}), Error::Ok);
      et::EValue* values[] = {sum.value(), data->value()};
      et::BackendExecutionContext context;
      ASSERT_EQ(copier->execute(context, copy, {values, 2}), Error::Ok);
    }
    EXPECT_THAT(gpusim::calls(), testing::Not(testing::Contains("cudaStreamSynchronize")));
  }
  cudaStreamSynchronize(stream);
  EXPECT_THAT(data->read<float>(), Each(5.0F));
  cudaStreamDestroy(stream);
  cudaDeviceSynchronize();
}
INSTANTIATE_TEST_SUITE_P(Seeds, MixedDelegates, testing::Range(1, 11));
