// Options: budgets as text and number, which source wins, what is refused.
#include "options.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

using executorch::runtime::BackendOption;
using executorch::runtime::BackendOptions;
using executorch::runtime::CompileSpec;
using executorch::runtime::Span;
using linkcheck::trt::Error;
using linkcheck::trt::Options;
using linkcheck::trt::parse_budget;
using linkcheck::trt::read_options;

namespace {

class OptionsTest : public testing::Test {
 protected:
  void compile_spec(const char* key, const std::string& value) {
    values_.push_back(value);
    keys_.push_back(key);
  }

  linkcheck::trt::Outcome<Options> read() {
    std::vector<CompileSpec> specs;
    for (size_t i = 0; i < keys_.size(); ++i) {
      specs.push_back({keys_[i].c_str(), {values_[i].data(), values_[i].size()}});
    }
    const auto view = load_time_.view();
    size_t used = 0;
    while (used < view.size() && view[used].key[0] != '\0') ++used;
    return read_options({view.data(), used}, {specs.data(), specs.size()});
  }

  void expect_budget(std::optional<int64_t> budget) {
    auto options = read();
    ASSERT_TRUE(options.ok()) << options.failure().message;
    EXPECT_EQ(options.value().weight_streaming_budget, budget);
  }

  void expect_refused() {
    auto options = read();
    ASSERT_FALSE(options.ok());
    EXPECT_EQ(options.failure().code, Error::InvalidProgram);
  }

  BackendOptions<4> load_time_;

 private:
  std::vector<std::string> keys_;
  std::vector<std::string> values_;
};

}  // namespace

TEST(Budget, IsDecimalDigitsOnly) {
  EXPECT_EQ(parse_budget("0"), 0);
  EXPECT_EQ(parse_budget("1073741824"), 1073741824);
  EXPECT_EQ(parse_budget("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(parse_budget("000000000000000000000000012"), 12);
  const std::string inside = "1234";
  EXPECT_EQ(parse_budget(std::string_view(inside).substr(0, 2)), 12);
  using namespace std::string_view_literals;
  for (const auto text :
       {"-1"sv, "-9223372036854775808"sv, "9223372036854775808"sv, ""sv, "lots"sv, "12MB"sv,
        "1 2"sv, " 12"sv, "12 "sv, "+12"sv, "1\0002"sv, "12\0"sv, "1e3"sv, "0x10"sv}) {
    EXPECT_EQ(parse_budget(text), std::nullopt) << text;
  }
}

TEST_F(OptionsTest, NothingGivenMeansDefaults) {
  compile_spec("target_device", "cuda:0");
  compile_spec("method_name", "forward");
  expect_budget(std::nullopt);
  EXPECT_TRUE(read().value().async_return);
}

TEST_F(OptionsTest, ACompileSpecIsUsed) {
  compile_spec("weight_streaming_budget", "4096");
  expect_budget(4096);
}

TEST_F(OptionsTest, ALoadTimeOptionWinsAndThenTheSpecIsNotLookedAt) {
  compile_spec("weight_streaming_budget", "nonsense");
  load_time_.set_option("weight_streaming_budget", "1024");
  expect_budget(1024);
  load_time_.set_option("weight_streaming_budget", 7);
  expect_budget(7);
}

TEST_F(OptionsTest, AnEmptyLoadTimeOptionIsIgnored) {
  compile_spec("weight_streaming_budget", "4096");
  load_time_.set_option("weight_streaming_budget", "");
  expect_budget(4096);
}

TEST_F(OptionsTest, MalformedLoadTimeOptionsAreRefused) {
  load_time_.set_option("weight_streaming_budget", "12MB");
  expect_refused();
  load_time_.set_option("weight_streaming_budget", -1);
  expect_refused();
  load_time_.set_option("weight_streaming_budget", true);
  expect_refused();
}

TEST_F(OptionsTest, MalformedOrRepeatedCompileSpecsAreRefused) {
  compile_spec("weight_streaming_budget", "-1");
  expect_refused();
}

TEST_F(OptionsTest, ARepeatedCompileSpecIsRefused) {
  compile_spec("weight_streaming_budget", "1");
  compile_spec("weight_streaming_budget", "1");
  expect_refused();
}

TEST_F(OptionsTest, AsyncReturnIsATruthValue) {
  load_time_.set_option("async_return", false);
  EXPECT_FALSE(read().value().async_return);
  load_time_.set_option("async_return", "no");
  expect_refused();
}

TEST_F(OptionsTest, MaxContextsIsANumberFromOne) {
  EXPECT_EQ(read().value().max_contexts, 4U);
  load_time_.set_option("max_contexts", 1);
  EXPECT_EQ(read().value().max_contexts, 1U);
  for (const int wrong : {0, -1, 1025}) {
    load_time_.set_option("max_contexts", wrong);
    expect_refused();
  }
  load_time_.set_option("max_contexts", "8");
  expect_refused();
}

TEST_F(OptionsTest, OnExhaustedIsWaitOrError) {
  EXPECT_TRUE(read().value().waits_for_context);
  load_time_.set_option("on_exhausted", "error");
  EXPECT_FALSE(read().value().waits_for_context);
  load_time_.set_option("on_exhausted", "wait");
  EXPECT_TRUE(read().value().waits_for_context);
  load_time_.set_option("on_exhausted", "Wait");
  expect_refused();
  load_time_.set_option("on_exhausted", true);
  expect_refused();
}
