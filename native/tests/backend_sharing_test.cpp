// Engines that are loaded twice: there once, and gone with the last user.
#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "backend_fixture.h"
#include "named_engines.h"

using testing::Each;

namespace {

const std::vector<int32_t> kShape = {2, 3, 4, 4};

class BackendSharing : public BackendTest {
 protected:
  void TearDown() override {
    for (et::DelegateHandle* handle : handles_) backend().destroy(handle);
    BackendTest::TearDown();
  }
  et::DelegateHandle* add(const std::string& blob_bytes) {
    et::DelegateHandle* handle = load_one_more(blob_bytes);
    EXPECT_NE(handle, nullptr);
    if (handle != nullptr) handles_.push_back(handle);
    return handle;
  }
  void remove_all() {
    for (et::DelegateHandle* handle : handles_) backend().destroy(handle);
    handles_.clear();
  }
  static size_t engines() { return gpusim::live().engines; }
  static std::string named_blob(const std::string& key) {
    const std::string more = R"(,"engine_key":")" + key + R"(")";
    return BlobBuilder().metadata(metadata({"input_0"}, {"output_0"}, more)).engine("").build();
  }
  std::string streamed() { return blob("streamed", metadata({"input_0"}, {"output_0"})); }

  std::vector<et::DelegateHandle*> handles_;
};

}  // namespace

TEST_F(BackendSharing, TheSameBytesAreOneEngineWhateverTheirBlobsSayBesides) {
  add(add_one_blob());
  add(add_one_blob(R"(,"serialized_metadata":"other")"));
  EXPECT_EQ(engines(), 1U);
  for (et::DelegateHandle* handle : handles_) {
    const auto input = TestTensor::floats(kShape, 1.0F);
    TestTensor output(ScalarType::Float, kShape);
    ASSERT_EQ(execute_on(handle, {input.get(), &output}), Error::Ok);
    EXPECT_THAT(output.read<float>(), Each(2.0F));
  }
}

TEST_F(BackendSharing, ItGoesWithItsLastUserInAnyOrder) {
  for (const bool first_goes_first : {true, false}) {
    et::DelegateHandle* first = load_one_more(add_one_blob());
    et::DelegateHandle* second = load_one_more(add_one_blob());
    backend().destroy(first_goes_first ? first : second);
    EXPECT_EQ(engines(), 1U);
    const auto input = TestTensor::floats(kShape, 1.0F);
    TestTensor output(ScalarType::Float, kShape);
    et::DelegateHandle* left = first_goes_first ? second : first;
    EXPECT_EQ(execute_on(left, {input.get(), &output}), Error::Ok);
    backend().destroy(left);
    EXPECT_EQ(engines(), 0U);
  }
}

TEST_F(BackendSharing, OtherBytesAreAnotherEngine) {
  add(add_one_blob());
  std::string plan = read_plan_file("add_one");
  // A byte more: the simulated plan ignores what follows it.
  add(BlobBuilder().metadata(metadata({"input_0"}, {"output_0"})).engine(plan + '\0').build());
  EXPECT_EQ(engines(), 2U);
}

TEST_F(BackendSharing, AnotherDeviceIsAnotherEngine) {
  gpusim::Settings settings;
  settings.devices = 2;
  restart(settings);
  add(add_one_blob());
  add(add_one_blob(R"(,"device_id":1)"));
  EXPECT_EQ(engines(), 2U);
}

TEST_F(BackendSharing, TheEffectiveWeightBudgetDecides) {
  options_.set_option("weight_streaming_budget", 300);
  add(streamed());
  add(streamed());
  EXPECT_EQ(engines(), 1U);
  options_.set_option("weight_streaming_budget", 400);
  add(streamed());
  EXPECT_EQ(engines(), 2U);
  options_.set_option("weight_streaming_budget", 5000);
  add(streamed());
  options_.set_option("weight_streaming_budget", "1000");
  add(streamed());
  EXPECT_EQ(engines(), 3U) << "both mean all of its 1000 bytes";
}

TEST_F(BackendSharing, AnAutomaticBudgetIsSharedWithAutomaticOnesOnly) {
  add(streamed());
  add(streamed());
  EXPECT_EQ(engines(), 1U);
  options_.set_option("weight_streaming_budget", 300);
  add(streamed());
  EXPECT_EQ(engines(), 2U);
}

TEST_F(BackendSharing, ABudgetIsNoDifferenceToAnEngineThatStreamsNothing) {
  add(add_one_blob());
  options_.set_option("weight_streaming_budget", 300);
  add(add_one_blob());
  EXPECT_EQ(engines(), 1U);
}

TEST_F(BackendSharing, LoadsAtOnceOfOneEngineCostOne) {
  constexpr int kThreads = 8;
  std::vector<et::DelegateHandle*> loaded(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back(
        [&, i] { loaded[static_cast<size_t>(i)] = load_one_more(add_one_blob()); });
  }
  for (std::thread& thread : threads) thread.join();
  handles_ = loaded;
  EXPECT_THAT(handles_, testing::Not(testing::Contains(nullptr)));
  EXPECT_EQ(engines(), 1U);
  size_t deserialized = 0;
  for (const std::string& call : gpusim::calls()) {
    if (call == "IRuntime::deserializeCudaEngine") ++deserialized;
  }
  EXPECT_EQ(deserialized, 1U);
}

TEST_F(BackendSharing, ALoadWaitsForTheSameEnginesLoadOnAnotherThread) {
  gpusim::hold_call("IRuntime::deserializeCudaEngine");
  const auto load_on_thread = [this] {
    return std::async(std::launch::async, [this] { return load_one_more(add_one_blob()); });
  };
  auto first = load_on_thread();
  gpusim::wait_for_held_call();
  auto second = load_on_thread();
  EXPECT_EQ(second.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  gpusim::release_held_call();
  handles_ = {first.get(), second.get()};
  EXPECT_EQ(engines(), 1U);
}

TEST_F(BackendSharing, NamedEnginesAreOnTheHostOneAtATime) {
  NamedEngines engines(NamedEngines::Loader::kFile);
  const std::string plan = read_plan_file("add_one");
  size_t largest = 0;
  for (int i = 0; i < 3; ++i) {
    const std::string engine = plan + std::string(static_cast<size_t>(100'000 * (i + 1)), '\0');
    largest = std::max(largest, engine.size());
    engines.add("tensorrt_engine_" + std::to_string(i), engine);
  }
  named_data_ = &engines;
  for (int i = 0; i < 3; ++i) add(named_blob("tensorrt_engine_" + std::to_string(i)));
  EXPECT_EQ(BackendSharing::engines(), 3U);
  EXPECT_EQ(engines.peak(), largest);
  EXPECT_EQ(engines.live(), 0U);
}

// Looked at while the context is being made: afterwards the copy is gone in any case.
TEST_F(BackendSharing, TheHostCopyIsGoneWhileTheFirstContextIsMade) {
  NamedEngines engines(NamedEngines::Loader::kFile);
  engines.add("tensorrt_engine_a", read_plan_file("add_one"));
  named_data_ = &engines;
  const auto load_held = [this](const std::string& blob_bytes, const auto& look) {
    bool freed = false;
    gpusim::hold_call("ICudaEngine::createExecutionContext");
    auto loading =
        std::async(std::launch::async, [&] { return load_one_more(blob_bytes, &freed); });
    gpusim::wait_for_held_call();
    look(freed);
    gpusim::release_held_call();
    handles_.push_back(loading.get());
    EXPECT_NE(handles_.back(), nullptr);
  };
  load_held(named_blob("tensorrt_engine_a"), [&](const bool&) {
    EXPECT_GT(engines.peak(), 0U);
    EXPECT_EQ(engines.live(), 0U);
  });
  load_held(add_one_blob(), [](const bool& freed) { EXPECT_TRUE(freed) << "an inline engine"; });
}

TEST_F(BackendSharing, MethodsThatNameOneEngineShareIt) {
  NamedEngines engines(NamedEngines::Loader::kMapped);
  engines.add("tensorrt_engine_a", read_plan_file("add_one"));
  named_data_ = &engines;
  add(named_blob("tensorrt_engine_a"));
  add(named_blob("tensorrt_engine_a"));
  add(add_one_blob());
  EXPECT_EQ(BackendSharing::engines(), 1U) << "inline or named is no difference";
}

TEST_F(BackendSharing, ARefusedEngineIsNotRemembered) {
  gpusim::fail_call("IRuntime::deserializeCudaEngine", 1);
  EXPECT_EQ(load_one_more(add_one_blob()), nullptr);
  add(add_one_blob());
  remove_all();
  EXPECT_EQ(engines(), 0U);
}

TEST_F(BackendSharing, TheHostCopyOfASecondLoadIsFreedToo) {
  bool freed = false;
  add(add_one_blob());
  et::DelegateHandle* second = load_one_more(add_one_blob(), &freed);
  EXPECT_TRUE(freed);
  backend().destroy(second);
}
