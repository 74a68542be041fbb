// The blob's names joined with the engine's tensors.
#include "signature.h"

#include <gmock/gmock.h>

using executorch::aten::ScalarType;
using linkcheck::trt::AliasKind;
using linkcheck::trt::BlobAlias;
using linkcheck::trt::BlobBinding;
using linkcheck::trt::Error;
using linkcheck::trt::resolve_signature;
using linkcheck::trt::Shape;
using linkcheck::trt::TensorDescription;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

TensorDescription tensor(const std::string& name, bool is_input) {
  TensorDescription description;
  description.name = name;
  description.is_input = is_input;
  description.dtype = ScalarType::Float;
  description.element_size = 4;
  description.shape = Shape{1, {4}};
  return description;
}

class SignatureTest : public testing::Test {
 protected:
  std::string refusal() {
    auto signature = resolve_signature(bindings_, aliases_, tensors_);
    EXPECT_FALSE(signature.ok());
    if (signature.ok()) return "";
    EXPECT_EQ(signature.failure().code, Error::InvalidProgram);
    return signature.failure().message;
  }

  std::vector<TensorDescription> tensors_ = {tensor("y", false), tensor("b", true),
                                             tensor("a", true)};
  std::vector<BlobBinding> bindings_ = {{"a", true}, {"b", true}, {"y", false}};
  std::vector<BlobAlias> aliases_;
};

}  // namespace

TEST_F(SignatureTest, ArgumentsFollowTheBlobsOrder) {
  auto signature = resolve_signature(bindings_, aliases_, tensors_);
  ASSERT_TRUE(signature.ok());
  EXPECT_EQ(signature.value().inputs[0].name, "a");
  EXPECT_EQ(signature.value().inputs[1].name, "b");
  EXPECT_EQ(signature.value().outputs[0].name, "y");
}

TEST_F(SignatureTest, WithoutBindingsTheNamesSayTheOrder) {
  auto signature = resolve_signature(
      {}, {}, {tensor("in_1", true), tensor("out_0", false), tensor("in_0", true)});
  ASSERT_TRUE(signature.ok());
  EXPECT_EQ(signature.value().inputs[0].name, "in_0");
  bindings_.clear();
  EXPECT_THAT(refusal(), HasSubstr("position"));
}

TEST_F(SignatureTest, MissingExtraAndTurnedTensorsAreRefused) {
  bindings_ = {{"a", true}, {"c", true}, {"y", false}};
  EXPECT_THAT(refusal(), HasSubstr("no tensor c"));
  bindings_ = {{"a", true}, {"y", false}};
  EXPECT_THAT(refusal(), HasSubstr("does not bind the engine's tensor b"));
  bindings_ = {{"a", true}, {"b", false}, {"y", false}};
  EXPECT_THAT(refusal(), HasSubstr("the opposite"));
}

TEST_F(SignatureTest, AUserAliasIsTaken) {
  aliases_ = {{"y", "b", AliasKind::kUser}};
  auto signature = resolve_signature(bindings_, aliases_, tensors_);
  ASSERT_TRUE(signature.ok());
  EXPECT_EQ(signature.value().aliased_inputs[0], 1U);
  EXPECT_THAT(signature.value().is_written, ElementsAre(false, true));
}

TEST_F(SignatureTest, AUserAliasOfAnotherTypeOrShapeIsRefused) {
  aliases_ = {{"y", "b", AliasKind::kUser}};
  tensors_[0].dtype = ScalarType::Int;
  EXPECT_THAT(refusal(), HasSubstr("another type or shape"));
  tensors_[0] = tensor("y", false);
  tensors_[0].shape = Shape{1, {5}};
  EXPECT_THAT(refusal(), HasSubstr("another type or shape"));
  tensors_[0].shape = Shape{2, {4, 1}};
  EXPECT_THAT(refusal(), HasSubstr("another type or shape"));
}

TEST_F(SignatureTest, AKvAliasMustBeTheEngines) {
  aliases_ = {{"y", "b", AliasKind::kKvCacheUpdate}};
  EXPECT_THAT(refusal(), HasSubstr("the engine does not"));
  tensors_[0].aliased_input = "a";
  EXPECT_THAT(refusal(), HasSubstr("the engine does not"));
  tensors_[0].aliased_input = "b";
  EXPECT_TRUE(resolve_signature(bindings_, aliases_, tensors_).ok());
}

TEST_F(SignatureTest, TheEnginesOwnAliasCountsWithoutTheBlob) {
  tensors_[0].aliased_input = "a";
  auto signature = resolve_signature(bindings_, aliases_, tensors_);
  ASSERT_TRUE(signature.ok());
  EXPECT_EQ(signature.value().aliased_inputs[0], 0U);
}

TEST_F(SignatureTest, UnknownNamesAndSharedInputsAreRefused) {
  aliases_ = {{"z", "b", AliasKind::kUser}};
  EXPECT_THAT(refusal(), HasSubstr("no such output"));
  aliases_ = {{"y", "c", AliasKind::kUser}};
  EXPECT_THAT(refusal(), HasSubstr("no input c"));
  aliases_ = {{"y", "a", AliasKind::kUser}, {"y", "b", AliasKind::kUser}};
  EXPECT_THAT(refusal(), HasSubstr("two inputs"));
  tensors_.push_back(tensor("z", false));
  bindings_.push_back({"z", false});
  aliases_ = {{"y", "a", AliasKind::kUser}, {"z", "a", AliasKind::kUser}};
  EXPECT_THAT(refusal(), HasSubstr("two outputs"));
}
