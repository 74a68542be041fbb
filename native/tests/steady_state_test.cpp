// What an execute costs once everything is warm: no device memory, no heap, no look-up, and exactly
// these calls. A program of its own, because WatchedHeap replaces its operator new.
#include <executorch/extension/cuda/caller_stream.h>

#include <new>
#include <thread>

#include "backend_fixture.h"
#include "named_engines.h"
#include "watched_heap.h"

using executorch::extension::cuda::CallerStreamGuard;
using testing::ElementsAre;

namespace {

const std::vector<int32_t> kShape = {2, 3, 4, 4};

class SteadyState : public BackendTest {
 protected:
  // Allocations of one execute after three that warm it up; its calls are in gpusim::calls().
  size_t count(Place place, bool with_guard) {
    std::optional<CallerStreamGuard> guard;
    if (with_guard) guard.emplace(new_stream());
    const auto input = TestTensor::floats(kShape, 1.0F, place);
    TestTensor output(ScalarType::Float, kShape, place);
    et::EValue* values[] = {input->value(), output.value()};
    et::BackendExecutionContext context;
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(backend().execute(context, handle(), {values, 2}), Error::Ok);
    }
    cudaDeviceSynchronize();
    gpusim::clear_calls();
    size_t counted = 0;
    {
      const WatchedHeap heap;
      EXPECT_EQ(backend().execute(context, handle(), {values, 2}), Error::Ok);
      counted = heap.allocations();
    }
    calls_ = gpusim::calls();
    cudaDeviceSynchronize();
    return counted;
  }

  std::vector<std::string> calls_;
};

}  // namespace

// By operator new itself: a compiler may leave out new-expressions that come to nothing.
TEST(WatchedHeapTest, CountsWhatItsThreadAllocatesAndNoOther) {
  constexpr size_t kMuch = size_t{1} << 20;
  void* const before = ::operator new(10);
  size_t allocations = 0;
  size_t bytes = 0;
  size_t bytes_in_the_end = 0;
  {
    const WatchedHeap heap;
    ::operator delete(before);
    ::operator delete(::operator new(1000));
    allocations = heap.allocations();
    bytes = heap.bytes();
    std::thread([] { ::operator delete(::operator new(kMuch)); }).join();
    bytes_in_the_end = heap.bytes();
  }
  EXPECT_EQ(allocations, 1U);
  EXPECT_EQ(bytes, 1000U);
  EXPECT_GT(bytes_in_the_end, bytes) << "the state of the thread is of this one's heap";
  EXPECT_LT(bytes_in_the_end, kMuch);
}

TEST_F(SteadyState, LoadingAMappedNamedEngineCopiesNothing) {
  NamedEngines engines(NamedEngines::Loader::kMapped);
  constexpr size_t kLarge = size_t{8} << 20;
  engines.add("tensorrt_engine_a", read_plan_file("add_one") + std::string(kLarge, '\0'));
  named_data_ = &engines;
  const std::string blob_bytes =
      BlobBuilder()
          .metadata(metadata({"input_0"}, {"output_0"}, R"(,"engine_key":"tensorrt_engine_a")"))
          .engine("")
          .build();
  size_t bytes = 0;
  {
    const WatchedHeap heap;
    ASSERT_EQ(load(blob_bytes), Error::Ok);
    bytes = heap.bytes();
  }
  EXPECT_LT(bytes, size_t{64} << 10);
}

TEST_F(SteadyState, ADeviceResidentExecuteUnderAGuard) {
  ASSERT_EQ(load_add_one(), Error::Ok);
  EXPECT_EQ(count(Place::kDevice, true), 0U);
  EXPECT_THAT(calls_, ElementsAre("cuCtxGetCurrent", "cuStreamGetCtx", "cuStreamIsCapturing",
                                  "cuPointerGetAttributes", "cuPointerGetAttributes",
                                  "cuEventQuery", "IExecutionContext::enqueueV3", "cuEventRecord"));
}

TEST_F(SteadyState, AHostStagedExecuteWithoutAGuard) {
  ASSERT_EQ(load_add_one(), Error::Ok);
  EXPECT_EQ(count(Place::kHost, false), 0U);
  EXPECT_THAT(
      calls_,
      ElementsAre("cuCtxGetCurrent", "cuStreamGetCtx_v2", "cuStreamGetCtx", "cuStreamIsCapturing",
                  "cuPointerGetAttributes", "cuPointerGetAttributes", "cudaMemcpyAsync",
                  "IExecutionContext::enqueueV3", "cudaMemcpyAsync", "cudaStreamSynchronize"));
}
