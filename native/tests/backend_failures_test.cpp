// Every CUDA and TensorRT call of init, execute and destroy fails once: the error is an error,
// nothing is leaked, nothing is left running, and the next call works.
#include <executorch/extension/cuda/caller_stream.h>

#include <functional>

#include "backend_fixture.h"

using executorch::extension::cuda::CallerStreamGuard;
using testing::Each;

namespace {

const std::vector<int32_t> kShape = {2, 3, 4, 4};

// Calls whose failure the delegate can do without: it logs it and goes on, as its documentation
// says.
bool is_dispensable(const std::string& call) {
  return call == "cudaDeviceGetAttribute" || call == "cudaEventDestroy" ||
         call == "cudaFreeAsync" || call == "cudaFree" || call == "cudaEventSynchronize" ||
         call == "cuEventQuery" || call == "cuEventRecord";
}

// What each failing call must be reported as.
Error expected_error(const std::string& call) {
  if (call == "IRuntime::deserializeCudaEngine") return Error::DelegateInvalidCompatibility;
  if (call.find("IExecutionContext") == 0) return Error::InvalidState;
  if (call.find("cu") == 0) return Error::Internal;
  return Error::InvalidProgram;
}

class BackendFailures : public BackendTest {
 protected:
  // The calls that `action` makes when nothing fails.
  static std::vector<std::string> calls_of(const std::function<void()>& action) {
    gpusim::clear_calls();
    action();
    return gpusim::calls();
  }

  // The arguments of one execute, made anew for each so that nothing stale can pass for a result,
  // and what the outputs must be.
  struct Call {
    std::vector<std::unique_ptr<TestTensor>> inputs;
    std::vector<std::unique_ptr<TestTensor>> outputs;
    float expected;
  };
  using MakeCall = std::function<Call()>;
  static Call call_add_one(Place place) {
    Call call;
    call.inputs.push_back(TestTensor::floats(kShape, 1.0F, place));
    call.outputs.push_back(std::make_unique<TestTensor>(ScalarType::Float, kShape, place));
    call.expected = 2.0F;
    return call;
  }
  Error execute_call(const Call& call) {
    std::vector<TestTensor*> arguments;
    for (const auto& input : call.inputs) arguments.push_back(input.get());
    for (const auto& output : call.outputs) arguments.push_back(output.get());
    return execute(arguments);
  }
  static void expect_results(const Call& call) {
    cudaDeviceSynchronize();  // an execute may have left its work running
    for (const auto& output : call.outputs) {
      EXPECT_THAT(output->read<float>(), Each(call.expected));
    }
  }

  // Fails each call of an execute of the loaded `blob_bytes` in turn, in its first execute and in a
  // later one.
  void fail_each_call(const std::string& blob_bytes, const MakeCall& make_call) {
    ASSERT_EQ(load(blob_bytes), Error::Ok);
    const auto first_calls = calls_of([&] {
      const Call call = make_call();
      EXPECT_EQ(execute_call(call), Error::Ok);
      expect_results(call);
    });
    for (size_t i = 0; i < first_calls.size(); ++i) {
      for (const bool warm : {false, true}) {
        SCOPED_TRACE(first_calls[i] + (warm ? " in a later" : " in the first") + " execute, call " +
                     std::to_string(i));
        ASSERT_EQ(load(blob_bytes), Error::Ok);
        const auto succeed = [&] {
          const Call call = make_call();
          EXPECT_EQ(execute_call(call), Error::Ok);
          expect_results(call);
        };
        if (warm) succeed();
        {
          const Call call = make_call();
          gpusim::clear_calls();
          gpusim::fail_call("*", i + 1);
          const Error error = execute_call(call);
          const auto calls = gpusim::calls();
          gpusim::clear_failures();
          if (error == Error::Ok) {
            expect_results(call);
            const bool reached = calls.size() > i;
            EXPECT_TRUE(!reached || is_dispensable(calls[i])) << calls[i] << " failed unnoticed";
          } else {
            EXPECT_EQ(error, expected_error(calls[i])) << calls[i];
            EXPECT_EQ(gpusim::live().pending_operations, 0U) << "work is left running";
          }
        }
        EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
        succeed();
        destroy();
      }
    }
    const gpusim::Live left = gpusim::live();
    EXPECT_EQ(left.device_allocations + left.host_allocations + left.events + left.contexts, 0U);
  }
  void fail_each_call(Place place) {
    fail_each_call(add_one_blob(), [place] { return call_add_one(place); });
  }
};

}  // namespace

TEST_F(BackendFailures, EachCallOfInit) {
  const auto calls = calls_of([this] {
    ASSERT_EQ(load(blob("streamed", metadata({"input_0"}, {"output_0"}))), Error::Ok);
  });
  destroy();
  ASSERT_GT(calls.size(), 8U);
  for (size_t i = 0; i < calls.size(); ++i) {
    SCOPED_TRACE(calls[i] + ", call " + std::to_string(i));
    gpusim::fail_call("*", i + 1);
    const Error error = load(blob("streamed", metadata({"input_0"}, {"output_0"})));
    gpusim::clear_failures();
    const bool has_fallback =
        is_dispensable(calls[i]) || calls[i] == "ICudaEngine::setWeightStreamingBudgetV2";
    EXPECT_EQ(error, has_fallback ? Error::Ok : expected_error(calls[i]));
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
    if (error != Error::Ok) {
      EXPECT_EQ(gpusim::leak_report(), "");
    }
    destroy();
  }
  EXPECT_EQ(gpusim::leak_report(), "");
}

TEST_F(BackendFailures, EachCallOfAHostStagedExecute) { fail_each_call(Place::kHost); }

TEST_F(BackendFailures, EachCallOfADeviceResidentExecute) { fail_each_call(Place::kDevice); }

TEST_F(BackendFailures, EachCallOfAnEarlyReturningExecute) {
  const CallerStreamGuard guard(new_stream());
  fail_each_call(Place::kDevice);
}

TEST_F(BackendFailures, EachCallOfAnExecuteThatUpdatesACache) {
  const std::string cache =
      blob("kv_cache", metadata({"cache", "token"}, {"cache_out", "sum"},
                                R"(,"aliased_io":[{"output":"cache_out","input":"cache"}])"));
  // Copies in both directions and one on the GPU, then the same without a wait.
  for (const Place place : {Place::kHost, Place::kDevice}) {
    std::optional<CallerStreamGuard> guard;
    if (place == Place::kDevice) guard.emplace(new_stream());
    fail_each_call(cache, [place] {
      Call call;
      call.inputs.push_back(TestTensor::floats({4}, 1.0F, Place::kDevice));
      call.inputs.push_back(TestTensor::floats({4}, 1.0F, place));
      for (int i = 0; i < 2; ++i) {
        call.outputs.push_back(
            std::make_unique<TestTensor>(ScalarType::Float, std::vector<int32_t>{4}, place));
      }
      call.expected = 2.0F;
      return call;
    });
  }
}

TEST_F(BackendFailures, EachCallOfACapturedExecute) {
  const cudaStream_t stream = new_stream();
  const CallerStreamGuard guard(stream);
  const auto capture = [&](const Call& call, const std::function<void()>& before) {
    EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    before();
    const Error error = execute_call(call);
    gpusim::clear_failures();
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess) << "the capture is not broken";
    cudaGraphDestroy(graph);
    return error;
  };
  ASSERT_EQ(load_add_one(), Error::Ok);
  size_t count = 0;
  {
    const Call call = call_add_one(Place::kDevice);
    ASSERT_EQ(execute_call(call), Error::Ok);
    cudaStreamSynchronize(stream);
    gpusim::clear_calls();
    ASSERT_EQ(capture(call, [] { gpusim::clear_calls(); }), Error::Ok);
    const auto calls = gpusim::calls();
    count = static_cast<size_t>(std::find(calls.begin(), calls.end(), "cudaStreamEndCapture") -
                                calls.begin());
  }
  ASSERT_GT(count, 4U);
  for (size_t i = 0; i < count; ++i) {
    ASSERT_EQ(load_add_one(), Error::Ok);
    const Call call = call_add_one(Place::kDevice);
    ASSERT_EQ(execute_call(call), Error::Ok);
    cudaStreamSynchronize(stream);
    const Error error = capture(call, [i] {
      gpusim::clear_calls();
      gpusim::fail_call("*", i + 1);
    });
    const std::string failed = gpusim::calls()[i];
    SCOPED_TRACE(failed + ", call " + std::to_string(i));
    // The last one gives the thread its capture mode back, when the work is done.
    const bool is_done = is_dispensable(failed) || i + 1 == count;
    EXPECT_EQ(error, is_done ? Error::Ok : expected_error(failed));
    EXPECT_EQ(gpusim::live().pending_operations, 0U);
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
    const Call next = call_add_one(Place::kDevice);
    EXPECT_EQ(execute_call(next), Error::Ok);
    expect_results(next);
    destroy();
  }
}

TEST_F(BackendFailures, EachCallOfAnExecuteOnASecondDevice) {
  gpusim::Settings settings;
  settings.devices = 2;
  restart(settings);
  const std::string on_second = add_one_blob(R"(,"device_id":1)");
  ASSERT_EQ(load(on_second), Error::Ok);
  const auto input = TestTensor::floats(kShape, 1.0F);
  TestTensor output(ScalarType::Float, kShape);
  const auto calls = calls_of([&] { ASSERT_EQ(execute({input.get(), &output}), Error::Ok); });
  for (size_t i = 0; i + 1 < calls.size(); ++i) {  // the last one restores the device
    SCOPED_TRACE(calls[i]);
    ASSERT_EQ(load(on_second), Error::Ok);
    gpusim::fail_call("*", i + 1);
    EXPECT_EQ(execute({input.get(), &output}), expected_error(calls[i]));
    gpusim::clear_failures();
    int current = -1;
    cudaGetDevice(&current);
    EXPECT_EQ(current, 0);
    EXPECT_EQ(execute({input.get(), &output}), Error::Ok);
  }
}

TEST_F(BackendFailures, ARefusedEnqueueSaysWhatTheReasonsAre) {
  ASSERT_EQ(load_add_one(), Error::Ok);
  const auto input = TestTensor::floats(kShape, 1.0F);
  TestTensor output(ScalarType::Float, kShape);
  gpusim::fail_call("IExecutionContext::enqueueV3", 1);
  EXPECT_EQ(execute({input.get(), &output}), Error::InvalidState);
  EXPECT_THAT(errors(), testing::HasSubstr("the stream must be on the engine's device"));
  EXPECT_THAT(errors(), testing::HasSubstr("green context"));
}

TEST_F(BackendFailures, AfterAnErrorTheContextIsToldEverythingAgain) {
  ASSERT_EQ(load_add_one(), Error::Ok);
  const auto input = TestTensor::floats(kShape, 1.0F, Place::kDevice);
  TestTensor output(ScalarType::Float, kShape, Place::kDevice);
  gpusim::fail_call("IExecutionContext::inferShapes", 1);
  EXPECT_EQ(execute({input.get(), &output}), Error::InvalidState);
  gpusim::clear_calls();
  EXPECT_EQ(execute({input.get(), &output}), Error::Ok);
  EXPECT_THAT(gpusim::calls(), testing::Contains("IExecutionContext::setInputShape"));
  EXPECT_THAT(gpusim::calls(), testing::Contains("IExecutionContext::inferShapes"));
}

TEST_F(BackendFailures, OutOfMemoryIsToldApart) {
  for (const bool pools : {true, false}) {
    gpusim::Settings settings;
    settings.memory_pools = pools;
    destroy();
    restart(settings);
    ASSERT_EQ(load_add_one(), Error::Ok);
    const auto input = TestTensor::floats(kShape, 1.0F);
    TestTensor output(ScalarType::Float, kShape);
    for (const uint64_t nth : {1U, 2U}) {
      gpusim::fail_call(pools ? "cudaMallocAsync" : "cudaMalloc", nth, cudaErrorMemoryAllocation);
      EXPECT_EQ(execute({input.get(), &output}), Error::MemoryAllocationFailed);
      gpusim::clear_failures();
      EXPECT_EQ(gpusim::live().pending_operations, 0U);
    }
    EXPECT_EQ(execute({input.get(), &output}), Error::Ok);
  }
}

TEST_F(BackendFailures, WhenEveryWaitFailsTheNextCallWaitsAgain) {
  options_.set_option("max_contexts", 1);
  ASSERT_EQ(load_add_one(), Error::Ok);
  const auto input = TestTensor::floats(kShape, 1.0F);
  TestTensor output(ScalarType::Float, kShape);
  gpusim::fail_call("cudaStreamSynchronize", 1);
  gpusim::fail_call("cudaStreamSynchronize", 2);
  gpusim::fail_call("cudaDeviceSynchronize", 1);
  EXPECT_EQ(execute({input.get(), &output}), Error::Internal);
  EXPECT_GT(gpusim::live().pending_operations, 0U) << "nothing could wait";
  // The same context on another stream: its order would not save a call that does not wait.
  const CallerStreamGuard guard(new_stream());
  EXPECT_EQ(execute({input.get(), &output}), Error::Ok);
  EXPECT_THAT(output.read<float>(), Each(2.0F));
}

TEST_F(BackendFailures, AFailingEventWaitIsNotTakenForDone) {
  ASSERT_EQ(load_add_one(), Error::Ok);
  const CallerStreamGuard guard(new_stream());
  const auto input = TestTensor::floats(kShape, 1.0F, Place::kDevice);
  TestTensor first(ScalarType::Float, kShape, Place::kDevice);
  TestTensor second(ScalarType::Float, kShape, Place::kDevice);
  ASSERT_EQ(execute({input.get(), &first}), Error::Ok);
  gpusim::fail_call("cuEventQuery", 1);
  gpusim::fail_call("cudaEventSynchronize", 1);
  gpusim::fail_call("cudaDeviceSynchronize", 1);
  gpusim::fail_call("cudaDeviceSynchronize", 2);
  EXPECT_EQ(execute({input.get(), &second}), Error::Internal) << "neither can be waited for";
  EXPECT_EQ(execute({input.get(), &second}), Error::Internal) << "nor can the device later";
  EXPECT_EQ(execute({input.get(), &second}), Error::Ok);
  cudaDeviceSynchronize();
  EXPECT_THAT(second.read<float>(), Each(2.0F));
}

TEST_F(BackendFailures, EachCallOfDestroyWithWorkInFlight) {
  for (const char* call :
       {"cuCtxGetCurrent", "cuEventQuery", "cudaEventSynchronize", "cudaEventDestroy"}) {
    SCOPED_TRACE(call);
    ASSERT_EQ(load_add_one(), Error::Ok);
    const auto input = TestTensor::floats(kShape, 1.0F, Place::kDevice);
    TestTensor output(ScalarType::Float, kShape, Place::kDevice);
    {
      const CallerStreamGuard guard(new_stream());
      ASSERT_EQ(execute({input.get(), &output}), Error::Ok);
    }
    gpusim::fail_call(call, 1);
    destroy();
    gpusim::clear_failures();
    EXPECT_THAT(output.read<float>(), Each(2.0F));
  }
}
