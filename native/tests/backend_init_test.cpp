// init: what is loaded, what is refused with which code, and that nothing stays behind a refusal.
#include <executorch/extension/cuda/caller_stream.h>

#include <cstring>

#include "backend_fixture.h"

using executorch::extension::cuda::CallerStreamGuard;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

namespace {

using BackendInit = BackendTest;

// The program's named data, with one engine.
class OneEngine final : public et::NamedDataMap {
 public:
  OneEngine(std::string key, const void* data, size_t size, bool* freed)
      : key_(std::move(key)), data_(data), size_(size), freed_(freed) {}

  et::Result<const et::TensorLayout> get_tensor_layout(std::string_view) const override {
    return Error::NotFound;
  }
  et::Result<et::FreeableBuffer> get_data(std::string_view key) const override {
    if (key != key_) return Error::NotFound;
    return et::FreeableBuffer(
        data_, size_, [](void* freed, void*, size_t) { *static_cast<bool*>(freed) = true; },
        freed_);
  }
  Error load_data_into(std::string_view, void*, size_t) const override { return Error::NotFound; }
  et::Result<uint32_t> get_num_keys() const override { return 1U; }
  et::Result<const char*> get_key(uint32_t) const override { return key_.c_str(); }

 private:
  std::string key_;
  const void* data_;
  size_t size_;
  bool* freed_;
};

}  // namespace

TEST_F(BackendInit, IsRegisteredOnceInTheRuntimesRegistry) {
  size_t count = 0;
  for (size_t i = 0; i < et::get_num_registered_backends(); ++i) {
    if (std::strcmp(et::get_backend_name(i).get(), "TensorRTBackend") == 0) ++count;
  }
  EXPECT_EQ(count, 1U);
  EXPECT_TRUE(backend().is_available());
  EXPECT_EQ(gpusim::live().runtimes, 0U);
}

TEST_F(BackendInit, IsNotAvailableWithoutTensorRt) {
  gpusim::fail_call("createInferRuntime", 1);
  EXPECT_FALSE(backend().is_available());
}

TEST_F(BackendInit, ALoadedEngineIsReportedInOneLine) {
  ASSERT_EQ(load(blob("dynamic", metadata({"x", "scale"}, {"y"}))), Error::Ok);
  EXPECT_THAT(infos(), HasSubstr("TensorRTBackend::init: engine ready (2 inputs, 1 outputs)\n"));
  EXPECT_EQ(errors(), "");
}

TEST_F(BackendInit, AnEngineForAnotherPlatformIsRefusedByName) {
  const auto load_for = [this](const std::string& platform) {
    return load(add_one_blob(R"(,"target_platform":")" + platform + R"(")"));
  };
  for (const char* platform : {"windows_x86_64", "win_x86_64", "windows_arm64", "win_arm64"}) {
    clear_log();
    gpusim::clear_calls();
    EXPECT_EQ(load_for(platform), Error::DelegateInvalidCompatibility) << platform;
    EXPECT_THAT(errors(), HasSubstr("the engine was built for " + std::string(platform)));
    EXPECT_THAT(gpusim::calls(), Not(Contains(HasSubstr("deserialize"))));
  }
#if defined(__x86_64__)
  EXPECT_EQ(load_for("linux_aarch64"), Error::DelegateInvalidCompatibility);
  EXPECT_EQ(load_for("linux_x86_64"), Error::Ok);
#elif defined(__aarch64__)
  EXPECT_EQ(load_for("linux_x86_64"), Error::DelegateInvalidCompatibility);
  EXPECT_EQ(load_for("linux_aarch64"), Error::Ok);
#endif
  for (const char* platform : {"", "unknown", "something_later"}) {
    EXPECT_EQ(load_for(platform), Error::Ok) << platform << " is left to TensorRT";
  }
  EXPECT_EQ(load(add_one_blob(R"(,"target_platform":7)")), Error::InvalidProgram);
}

TEST_F(BackendInit, ARefusedEngineSaysWhetherItWasForOneKindOfGpuOnly) {
  const auto load_bad = [this](const char* compatible) {
    clear_log();
    const std::string more = std::string(R"(,"hardware_compatible":)") + compatible;
    return load(
        BlobBuilder().metadata(metadata({"input_0"}, {"output_0"}, more)).engine("bad").build());
  };
  EXPECT_EQ(load_bad("false"), Error::DelegateInvalidCompatibility);
  EXPECT_THAT(errors(), HasSubstr("for GPUs of one kind only"));
  EXPECT_EQ(load_bad("true"), Error::DelegateInvalidCompatibility);
  EXPECT_THAT(errors(), Not(HasSubstr("for GPUs of one kind only")));
}

TEST_F(BackendInit, TensorRtsMessagesAreLoggedByTheirSeverity) {
  ASSERT_EQ(load_add_one(), Error::Ok);
  EXPECT_THAT(infos(), Not(HasSubstr("deserializeCudaEngine"))) << "information is dropped";
  const CallerStreamGuard guard(nullptr);
  const auto input = TestTensor::floats({2, 3, 4, 4}, 1.0F);
  TestTensor output(ScalarType::Float, {2, 3, 4, 4});
  ASSERT_EQ(execute({input.get(), &output}), Error::Ok);
  EXPECT_THAT(infos(), HasSubstr("TensorRT warning: enqueueV3"));
  EXPECT_EQ(errors(), "");
  EXPECT_EQ(load(BlobBuilder().metadata(metadata({"input_0"}, {"output_0"})).build()),
            Error::DelegateInvalidCompatibility);
  EXPECT_THAT(errors(), HasSubstr("TensorRT: deserializeCudaEngine"));
}

TEST_F(BackendInit, LoadsAndFreesTheHostCopyBeforeTheFirstContext) {
  ASSERT_EQ(load_add_one(), Error::Ok);
  EXPECT_TRUE(processed_was_freed());
  EXPECT_EQ(gpusim::live().engines, 1U);
  gpusim::fail_call("ICudaEngine::createExecutionContext", 1);
  EXPECT_EQ(load_add_one(), Error::InvalidProgram);
  EXPECT_TRUE(processed_was_freed());
}

TEST_F(BackendInit, RefusalsHaveTheirCodes) {
  EXPECT_EQ(load("TR03"), Error::InvalidProgram);
  EXPECT_THAT(errors(), HasSubstr("TensorRTBackend::init: blob: "));
  EXPECT_EQ(load(BlobBuilder().metadata(metadata({"input_0"}, {"output_0"})).build()),
            Error::DelegateInvalidCompatibility);
  EXPECT_EQ(load(add_one_blob(R"(,"device_id":1)")), Error::NotFound);
  EXPECT_EQ(load(blob("add_one", metadata({"input_0"}, {"other"}))), Error::InvalidProgram);
  EXPECT_EQ(load(blob("fp8", metadata({"input_0"}, {"output_0"}))), Error::InvalidProgram);
  EXPECT_EQ(load(blob("shape_tensor", metadata({"input_0"}, {"output_0"}))), Error::InvalidProgram);
  EXPECT_EQ(load(blob("vectorized", metadata({"input_0"}, {"output_0"}))), Error::InvalidProgram);
  EXPECT_THAT(errors(), HasSubstr("linear layout"));
  allocator_ = nullptr;
  EXPECT_EQ(load_add_one(), Error::InvalidState);
  uint8_t storage[8] = {};
  et::MemoryAllocator small(sizeof(storage), storage);
  allocator_ = &small;
  EXPECT_EQ(load_add_one(), Error::MemoryAllocationFailed);
}

TEST_F(BackendInit, NoProcessedDataIsRefused) {
  et::BackendInitContext context(allocator_);
  EXPECT_EQ(backend().init(context, nullptr, {}).error(), Error::InvalidArgument);
  et::FreeableBuffer empty;
  EXPECT_EQ(backend().init(context, &empty, {}).error(), Error::InvalidArgument);
}

TEST_F(BackendInit, BindingsMayBeInferredFromNames) {
  EXPECT_EQ(load(blob("add_one", R"({"io_bindings":[]})")), Error::Ok);
  EXPECT_EQ(load(blob("dynamic", R"({"io_bindings":[]})")), Error::InvalidProgram);
}

TEST_F(BackendInit, TheWeightBudgetIsAppliedBeforeTheFirstContext) {
  const std::string streamed = blob("streamed", metadata({"input_0"}, {"output_0"}));
  const auto sets_budget = Contains(std::string("ICudaEngine::setWeightStreamingBudgetV2"));
  ASSERT_EQ(load(streamed), Error::Ok);
  EXPECT_THAT(gpusim::calls(), sets_budget);
  gpusim::clear_calls();
  ASSERT_EQ(load_add_one(), Error::Ok);
  EXPECT_THAT(gpusim::calls(), Not(sets_budget)) << "this engine streams nothing";

  gpusim::fail_call("ICudaEngine::setWeightStreamingBudgetV2", 1);
  EXPECT_EQ(load(streamed), Error::Ok) << "an automatic budget falls back to 0";
  options_.set_option("weight_streaming_budget", "500");
  gpusim::fail_call("ICudaEngine::setWeightStreamingBudgetV2", 1);
  EXPECT_EQ(load(streamed), Error::InvalidProgram) << "a chosen one does not";
  EXPECT_EQ(load(streamed), Error::Ok);
  EXPECT_EQ(load_add_one(), Error::Ok);
  EXPECT_THAT(errors(), HasSubstr("has no effect"));
}

TEST_F(BackendInit, TheWeightBudgetIsTheChosenOneUpToAllStreamableWeights) {
  const std::string streamed = blob("streamed", metadata({"input_0"}, {"output_0"}));
  ASSERT_EQ(load(streamed), Error::Ok);
  EXPECT_EQ(gpusim::last_weight_budget(), 500) << "TensorRT's own choice";
  std::string compiled = "300";
  compile_specs_.push_back({"weight_streaming_budget", {compiled.data(), compiled.size()}});
  ASSERT_EQ(load(streamed), Error::Ok);
  EXPECT_EQ(gpusim::last_weight_budget(), 300);
  options_.set_option("weight_streaming_budget", 0);
  ASSERT_EQ(load(streamed), Error::Ok);
  EXPECT_EQ(gpusim::last_weight_budget(), 0);
  options_.set_option("weight_streaming_budget", "9223372036854775807");
  ASSERT_EQ(load(streamed), Error::Ok);
  EXPECT_EQ(gpusim::last_weight_budget(), 1000);
}

TEST_F(BackendInit, AMalformedCompileSpecIsRefused) {
  std::string value = "12MB";
  compile_specs_.push_back({"weight_streaming_budget", {value.data(), value.size()}});
  EXPECT_EQ(load_add_one(), Error::InvalidProgram);
  options_.set_option("weight_streaming_budget", "12");
  EXPECT_EQ(load_add_one(), Error::Ok);
}

TEST_F(BackendInit, ANamedEngineIsTakenFromTheProgramsData) {
  const std::string plan = read_plan_file("add_one");
  std::vector<unsigned char> aligned(plan.size() + 32);
  auto* begin = aligned.data() + (16 - reinterpret_cast<uintptr_t>(aligned.data()) % 16) % 16;
  std::memcpy(begin, plan.data(), plan.size());
  bool freed = false;
  const std::string named =
      BlobBuilder()
          .metadata(metadata({"input_0"}, {"output_0"}, R"(,"engine_key":"tensorrt_engine_ab")"))
          .engine("")
          .build();
  EXPECT_EQ(load(named), Error::InvalidProgram);
  EXPECT_THAT(errors(), HasSubstr("no named data"));

  const OneEngine other("tensorrt_engine_cd", begin, plan.size(), &freed);
  named_data_ = &other;
  EXPECT_EQ(load(named), Error::InvalidProgram);
  EXPECT_THAT(errors(), HasSubstr("has no tensorrt_engine_ab"));

  const OneEngine unaligned("tensorrt_engine_ab", begin + 1, plan.size() - 1, &freed);
  named_data_ = &unaligned;
  EXPECT_EQ(load(named), Error::InvalidProgram);
  EXPECT_THAT(errors(), HasSubstr("16-byte aligned"));

  freed = false;
  const OneEngine right("tensorrt_engine_ab", begin, plan.size(), &freed);
  named_data_ = &right;
  gpusim::fail_call("ICudaEngine::createExecutionContext", 1);
  EXPECT_EQ(load(named), Error::InvalidProgram);
  EXPECT_TRUE(freed) << "the host copy must be gone before a context is made";
  EXPECT_EQ(load(named), Error::Ok);
}

TEST_F(BackendInit, TheDeviceIsSwitchedOnlyWhenNeededAndRestored) {
  gpusim::Settings settings;
  settings.devices = 2;
  restart(settings);
  const auto switches = Contains(std::string("cudaSetDevice"));
  ASSERT_EQ(load_add_one(), Error::Ok);
  destroy();
  EXPECT_THAT(gpusim::calls(), Not(switches));
  ASSERT_EQ(load(add_one_blob(R"(,"device_id":1)")), Error::Ok);
  int current = -1;
  cudaGetDevice(&current);
  EXPECT_EQ(current, 0);
  destroy();
  cudaGetDevice(&current);
  EXPECT_EQ(current, 0);
  EXPECT_THAT(gpusim::calls(), switches);
  EXPECT_EQ(load(add_one_blob(R"(,"device_id":1,"aliased_io":[{"output":"o","input":"i"}])")),
            Error::InvalidProgram);
  cudaGetDevice(&current);
  EXPECT_EQ(current, 0) << "after an error, too";
}

TEST_F(BackendInit, MessagesOfALaterEngineDoNotGoToALoggerThatIsGone) {
  ASSERT_EQ(load_add_one(), Error::Ok);
  destroy();
  clear_log();
  EXPECT_EQ(load(BlobBuilder().metadata(metadata({"input_0"}, {"output_0"})).build()),
            Error::DelegateInvalidCompatibility);
  EXPECT_THAT(errors(), HasSubstr("TensorRT: deserializeCudaEngine"));
}
