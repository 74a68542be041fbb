// Each allocation of init, execute and destroy fails once: that is an error like any other. Nothing
// is thrown at the caller, nothing is leaked or left running, and the next call works.
#include <executorch/extension/cuda/caller_stream.h>
#include <executorch/runtime/platform/platform.h>

#include "backend_fixture.h"
#include "watched_heap.h"

using executorch::extension::cuda::CallerStreamGuard;
using testing::AnyOf;
using testing::Each;
using testing::Eq;

namespace {

const std::vector<int32_t> kShape = {2, 3, 4, 4};
// More than any of these calls makes.
constexpr size_t kMost = 2000;

class OutOfMemory : public BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    // The fixture's log grows on the heap.
    et::register_pal(et::PalImpl::create([](et_timestamp_t, et_pal_log_level_t, const char*,
                                            const char*, size_t, const char*, size_t) {},
                                         __FILE__));
  }
  // Of arguments made before, so that only the delegate's allocations are watched.
  Error execute_watched(TestTensor& input, TestTensor& output, size_t fail_at, size_t* made) {
    et::EValue* values[] = {input.value(), output.value()};
    et::BackendExecutionContext context;
    const WatchedHeap heap(fail_at);
    const Error error = backend().execute(context, handle(), {values, 2});
    *made = heap.allocations();
    return error;
  }
  void expect_it_works() {
    const auto input = TestTensor::floats(kShape, 1.0F);
    TestTensor output(ScalarType::Float, kShape);
    ASSERT_EQ(execute({input.get(), &output}), Error::Ok);
    EXPECT_THAT(output.read<float>(), Each(2.0F));
  }
};

}  // namespace

// From the first CUDA call on. What is allocated before is for the blob's JSON, whose library
// allocates in a destructor as well; that ends the process.
TEST_F(OutOfMemory, EachAllocationOfInitOnceTheBlobIsRead) {
  const std::string bytes = add_one_blob();
  size_t made = 0;
  const auto init_and_destroy = [&](size_t fail_at) {
    et::FreeableBuffer processed(bytes.data(), bytes.size(), nullptr);
    // ExecuTorch's own one on the heap loses what it has when its list of it cannot grow.
    alignas(16) uint8_t storage[1024];
    et::MemoryAllocator allocator(sizeof(storage), storage);
    et::BackendInitContext context(&allocator);
    const WatchedHeap heap(fail_at);
    auto loaded = backend().init(context, &processed, {});
    made = heap.allocations();
    if (loaded.ok()) backend().destroy(loaded.get());
    return loaded.error();
  };
  gpusim::fail_call("*", 1);
  EXPECT_EQ(init_and_destroy(0), Error::Internal);
  gpusim::clear_failures();
  size_t failed = 0;
  for (size_t n = made + 1; n < kMost; ++n) {
    SCOPED_TRACE(n);
    const Error error = init_and_destroy(n);
    ASSERT_EQ(gpusim::leak_report(), "");
    if (made < n) {
      EXPECT_EQ(error, Error::Ok);
      break;
    }
    EXPECT_EQ(error, Error::MemoryAllocationFailed);
    ++failed;
  }
  EXPECT_GT(failed, 5U);
  ASSERT_EQ(load_add_one(), Error::Ok);
  expect_it_works();
}

TEST_F(OutOfMemory, EachAllocationOfTheFirstExecuteOnAStream) {
  size_t failed = 0;
  for (size_t n = 1; n < kMost; ++n) {
    SCOPED_TRACE(n);
    ASSERT_EQ(load_add_one(), Error::Ok);
    expect_it_works();  // takes the context that is there, so that the next stream needs another
    const auto input = TestTensor::floats(kShape, 1.0F);
    TestTensor output(ScalarType::Float, kShape);
    size_t made = 0;
    {
      const CallerStreamGuard guard(new_stream());
      const Error error = execute_watched(*input, output, n, &made);
      EXPECT_EQ(error, made < n ? Error::Ok : Error::MemoryAllocationFailed);
      EXPECT_EQ(gpusim::live().pending_operations, 0U);
      expect_it_works();
    }
    if (made < n) break;
    ++failed;
  }
  EXPECT_GT(failed, 0U);
}

TEST_F(OutOfMemory, TheWordsOfAnErrorAfterWorkWasEnqueued) {
  for (const char* call :
       {"IExecutionContext::enqueueV3", "cudaMemcpyAsync", "cudaStreamSynchronize"}) {
    size_t failed = 0;
    for (size_t n = 1; n < kMost; ++n) {
      SCOPED_TRACE(std::string(call) + ", allocation " + std::to_string(n));
      ASSERT_EQ(load_add_one(), Error::Ok);
      expect_it_works();
      const auto input = TestTensor::floats(kShape, 1.0F);
      TestTensor output(ScalarType::Float, kShape);
      gpusim::fail_call(call, call == std::string("cudaMemcpyAsync") ? 2 : 1);
      size_t made = 0;
      const Error error = execute_watched(*input, output, n, &made);
      gpusim::clear_failures();
      EXPECT_THAT(error, AnyOf(Eq(Error::MemoryAllocationFailed), Eq(Error::Internal),
                               Eq(Error::InvalidState)));
      EXPECT_EQ(gpusim::live().pending_operations, 0U) << "work is left running";
      EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
      expect_it_works();
      if (made < n) break;
      EXPECT_EQ(error, Error::MemoryAllocationFailed);
      ++failed;
    }
    EXPECT_GT(failed, 0U);
  }
}

TEST_F(OutOfMemory, DestroyingWaitsWithoutWords) {
  size_t failed = 0;
  for (size_t n = 1; n < kMost; ++n) {
    SCOPED_TRACE(n);
    ASSERT_EQ(load_add_one(), Error::Ok);
    const auto input = TestTensor::floats(kShape, 1.0F, Place::kDevice);
    TestTensor output(ScalarType::Float, kShape, Place::kDevice);
    {
      const CallerStreamGuard guard(new_stream());
      ASSERT_EQ(execute({input.get(), &output}), Error::Ok);
    }
    gpusim::fail_call("cuCtxGetCurrent", 1);
    gpusim::fail_call("cuEventQuery", 1);
    gpusim::fail_call("cudaEventSynchronize", 1);
    size_t made = 0;
    {
      const WatchedHeap heap(n);
      destroy();
      made = heap.allocations();
    }
    gpusim::clear_failures();
    EXPECT_THAT(output.read<float>(), Each(2.0F));
    if (made < n) break;
    ++failed;
  }
  // In both destructors: of the engine, whose device cannot be made current, and of its context,
  // whose work cannot be waited for.
  EXPECT_GT(failed, 1U);
}
