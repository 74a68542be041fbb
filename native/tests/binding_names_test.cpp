// The order of tensors read from their names.
#include "binding_names.h"

#include <gmock/gmock.h>

using linkcheck::trt::BlobBinding;
using linkcheck::trt::infer_bindings;
using linkcheck::trt::parse_position;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

std::vector<std::string> inferred(const std::vector<BlobBinding>& found) {
  auto outcome = infer_bindings(found);
  EXPECT_TRUE(outcome.ok());
  std::vector<std::string> names;
  for (const BlobBinding& binding : outcome.value()) names.push_back(binding.name);
  return names;
}

std::string refusal(const std::vector<BlobBinding>& found) {
  auto outcome = infer_bindings(found);
  EXPECT_FALSE(outcome.ok());
  return outcome.ok() ? "" : outcome.failure().message;
}

}  // namespace

TEST(BindingNames, APositionIsTheNumberAfterTheLastSeparator) {
  EXPECT_EQ(parse_position("input.0"), 0U);
  EXPECT_EQ(parse_position("output_12"), 12U);
  EXPECT_EQ(parse_position("profile.input_3"), 3U);
  EXPECT_EQ(parse_position("a_b.007"), 7U);
}

TEST(BindingNames, AnythingElseIsNoPosition) {
  for (const char* name : {"", "input", "input.", "input_", "input.foo", "input.3x", "input_+3",
                           "input_-1", "input_ 1", "3", "input_99999999999"}) {
    EXPECT_EQ(parse_position(name), std::nullopt) << name;
  }
}

TEST(BindingNames, InputsComeFirstEachByPosition) {
  EXPECT_THAT(
      inferred({{"output_1", false}, {"input_1", true}, {"output_0", false}, {"input.0", true}}),
      ElementsAre("input.0", "input_1", "output_0", "output_1"));
}

TEST(BindingNames, DuplicatesGapsAndNamelessPositionsAreRefused) {
  EXPECT_THAT(refusal({{"a_0", true}, {"b_0", true}}), HasSubstr("one position"));
  EXPECT_THAT(refusal({{"a_0", true}, {"a_2", true}}), HasSubstr("gap"));
  EXPECT_THAT(refusal({{"a_1", false}}), HasSubstr("gap"));
  EXPECT_THAT(refusal({{"x", true}}), HasSubstr("does not end in its position"));
}
