// Outputs that are an input's memory, updated: caches of the engine's own kind and of the
// exporter's.
#include <executorch/extension/cuda/caller_stream.h>

#include "backend_fixture.h"

using executorch::extension::cuda::CallerStreamGuard;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

class BackendAlias : public BackendTest {
 protected:
  Error load_cache() {
    return load(
        blob("kv_cache", metadata({"cache", "token"}, {"cache_out", "sum"},
                                  R"(,"aliased_io":[{"output":"cache_out","input":"cache"}])")));
  }
  Error load_dynamic_cache() {
    return load(blob("dynamic_cache",
                     metadata({"cache", "token"}, {"cache_out"},
                              R"(,"aliased_io":[{"output":"cache_out","input":"cache"}])")));
  }
  Error load_user() {
    return load(
        blob("user_alias",
             metadata({"state", "step"}, {"state_out"},
                      R"(,"aliased_io":[{"output":"state_out","input":"state","kind":"user"}])")));
  }
};

}  // namespace

TEST_F(BackendAlias, TheCacheIsUpdatedInPlaceFromCallToCall) {
  ASSERT_EQ(load_cache(), Error::Ok);
  const auto cache = TestTensor::floats({4}, 0.0F, Place::kDevice);
  const auto token = TestTensor::floats({4}, 1.0F);
  TestTensor sum(ScalarType::Float, {4});
  TestTensor cache_out(ScalarType::Float, {4});
  cache_out.impl().set_data(cache->data());  // as the memory planner leaves it
  for (int run = 1; run <= 3; ++run) {
    ASSERT_EQ(execute({cache.get(), token.get(), &cache_out, &sum}), Error::Ok);
    EXPECT_THAT(sum.read<float>(), Each(static_cast<float>(run)));
  }
  EXPECT_THAT(cache->read<float>(), Each(3.0F));
}

TEST_F(BackendAlias, AnOutputElsewhereGetsACopy) {
  ASSERT_EQ(load_cache(), Error::Ok);
  for (const Place place : {Place::kDevice, Place::kHost, Place::kPinned}) {
    const auto cache = TestTensor::floats({4}, 1.0F, Place::kDevice);
    const auto token = TestTensor::floats({4}, 1.0F);
    TestTensor cache_out(ScalarType::Float, {4}, place);
    TestTensor sum(ScalarType::Float, {4});
    ASSERT_EQ(execute({cache.get(), token.get(), &cache_out, &sum}), Error::Ok);
    EXPECT_THAT(cache_out.read<float>(), Each(2.0F));
    EXPECT_THAT(cache->read<float>(), Each(2.0F));
  }
}

TEST_F(BackendAlias, DeviceTensorsReturnEarlyWithAnAliasToo) {
  ASSERT_EQ(load_cache(), Error::Ok);
  const auto cache = TestTensor::floats({4}, 1.0F, Place::kDevice);
  const auto token = TestTensor::floats({4}, 1.0F, Place::kDevice);
  TestTensor cache_out(ScalarType::Float, {4}, Place::kDevice);
  TestTensor sum(ScalarType::Float, {4}, Place::kDevice);
  const cudaStream_t stream = new_stream();
  const CallerStreamGuard guard(stream);
  ASSERT_EQ(execute({cache.get(), token.get(), &cache_out, &sum}), Error::Ok);
  EXPECT_GT(gpusim::live().pending_operations, 0U);
  cudaStreamSynchronize(stream);
  EXPECT_THAT(cache_out.read<float>(), Each(2.0F));
}

TEST_F(BackendAlias, AHostCacheIsRefused) {
  ASSERT_EQ(load_cache(), Error::Ok);
  const auto cache = TestTensor::floats({4}, 0.0F);
  const auto token = TestTensor::floats({4}, 1.0F);
  TestTensor cache_out(ScalarType::Float, {4});
  TestTensor sum(ScalarType::Float, {4});
  EXPECT_EQ(execute({cache.get(), token.get(), &cache_out, &sum}), Error::InvalidArgument);
  EXPECT_THAT(errors(),
              HasSubstr("input cache is written by the engine and must be in device memory"));
}

TEST_F(BackendAlias, AnEmptyCacheIsRefused) {
  ASSERT_EQ(load_dynamic_cache(), Error::Ok);
  TestTensor cache(ScalarType::Float, {0, 4}, Place::kDevice);
  const auto token = TestTensor::floats({0, 4}, 1.0F);
  TestTensor cache_out(ScalarType::Float, {8, 4});
  EXPECT_EQ(execute({&cache, token.get(), &cache_out}), Error::InvalidArgument);
  EXPECT_THAT(errors(), HasSubstr("input cache is written by the engine and must not be empty"));
}

TEST_F(BackendAlias, TheOutputTakesTheCachesShape) {
  ASSERT_EQ(load_dynamic_cache(), Error::Ok);
  TestTensor cache_out(ScalarType::Float, {8, 4});
  for (const int rows : {2, 8, 5}) {
    const auto cache = TestTensor::floats({rows, 4}, 1.0F, Place::kDevice);
    const auto token = TestTensor::floats({rows, 4}, 2.0F);
    ASSERT_EQ(execute({cache.get(), token.get(), &cache_out}), Error::Ok);
    EXPECT_THAT(cache_out.sizes(), ElementsAre(rows, 4));
    EXPECT_THAT(cache_out.read<float>(), Each(3.0F));
    EXPECT_THAT(cache->read<float>(), Each(3.0F));
  }
}

TEST_F(BackendAlias, AManagedCacheIsUpdatedInPlace) {
  ASSERT_EQ(load_cache(), Error::Ok);
  const auto cache = TestTensor::floats({4}, 1.0F, Place::kManaged);
  const auto token = TestTensor::floats({4}, 1.0F);
  TestTensor cache_out(ScalarType::Float, {4});
  cache_out.impl().set_data(cache->data());
  TestTensor sum(ScalarType::Float, {4});
  ASSERT_EQ(execute({cache.get(), token.get(), &cache_out, &sum}), Error::Ok);
  EXPECT_THAT(cache->read<float>(), Each(2.0F));
}

TEST_F(BackendAlias, AUserAliasIsBoundToTheInputsMemory) {
  ASSERT_EQ(load_user(), Error::Ok);
  const auto state = TestTensor::floats({4}, 1.0F, Place::kDevice);
  const auto step = TestTensor::floats({4}, 2.0F);
  TestTensor state_out(ScalarType::Float, {4});
  ASSERT_EQ(execute({state.get(), step.get(), &state_out}), Error::Ok);
  EXPECT_THAT(state->read<float>(), Each(3.0F));
  EXPECT_THAT(state_out.read<float>(), Each(3.0F));
}

TEST_F(BackendAlias, AnAliasThatTheEngineDoesNotHaveIsRefused) {
  EXPECT_EQ(load(blob("user_alias",
                      metadata({"state", "step"}, {"state_out"},
                               R"(,"aliased_io":[{"output":"state_out","input":"state"}])"))),
            Error::InvalidProgram);
  EXPECT_EQ(
      load(blob("kv_cache", metadata({"cache", "token"}, {"cache_out", "sum"},
                                     R"(,"aliased_io":[{"output":"cache_out","input":"token"}])"))),
      Error::InvalidProgram);
}
