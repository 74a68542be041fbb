// What an execute costs once everything is warm: no device memory, no heap, no look-up, and exactly
// these calls. A program of its own, because it counts the whole program's allocations.
#include <executorch/extension/cuda/caller_stream.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "backend_fixture.h"
#include "named_engines.h"

using executorch::extension::cuda::CallerStreamGuard;
using testing::ElementsAre;

namespace {

std::atomic<size_t> allocations{0};
std::atomic<size_t> allocated_bytes{0};
thread_local bool counting = false;

void* allocate(size_t size) {
  // What the simulator allocates stands for the GPU's own doing.
  if (counting && !gpusim::is_in_call()) {
    ++allocations;
    allocated_bytes += size;
  }
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(size_t size) { return allocate(size); }
void* operator new[](size_t size) { return allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

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
    allocations = 0;
    counting = true;
    const Error error = backend().execute(context, handle(), {values, 2});
    counting = false;
    EXPECT_EQ(error, Error::Ok);
    const size_t counted = allocations;
    calls_ = gpusim::calls();
    cudaDeviceSynchronize();
    return counted;
  }

  std::vector<std::string> calls_;
};

}  // namespace

TEST_F(SteadyState, TheCounterCounts) {
  counting = true;
  auto kept = std::make_unique<int>(1);
  counting = false;
  EXPECT_GT(allocations, 0U);
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
  allocated_bytes = 0;
  counting = true;
  const Error error = load(blob_bytes);
  counting = false;
  ASSERT_EQ(error, Error::Ok);
  EXPECT_LT(allocated_bytes, size_t{64} << 10);
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
