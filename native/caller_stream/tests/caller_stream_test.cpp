// What getCallerStream() and CallerStreamGuard promise, case by case, in one file of a process.
#include <executorch/extension/cuda/caller_stream.h>

#include <gtest/gtest.h>

#include <thread>

#include "fake_streams.h"

namespace {

using caller_stream_tests::perThread;
using caller_stream_tests::stream;
using executorch::extension::cuda::CallerStreamGuard;
using executorch::extension::cuda::getCallerStream;

TEST(CallerStream, IsEmptyWithoutAGuard) { EXPECT_EQ(getCallerStream(), std::nullopt); }

TEST(CallerStream, IsTheGuardsStreamAndEmptyAgainAfterwards) {
  {
    const CallerStreamGuard guard{stream(0x1000)};
    EXPECT_EQ(getCallerStream(), std::optional{stream(0x1000)});
  }
  EXPECT_EQ(getCallerStream(), std::nullopt);
}

TEST(CallerStream, TakesAnExplicitNullStreamAsAChoice) {
  const CallerStreamGuard guard{nullptr};
  const std::optional<cudaStream_t> seen = getCallerStream();
  ASSERT_TRUE(seen.has_value());
  EXPECT_EQ(*seen, nullptr);
}

TEST(CallerStream, TakesAnExplicitPerThreadStreamAsAChoice) {
  const CallerStreamGuard guard{perThread()};
  EXPECT_EQ(getCallerStream(), std::optional{perThread()});
}

TEST(CallerStream, NestedGuardsRestoreTheOuterChoice) {
  const CallerStreamGuard outer{stream(0x1000)};
  {
    const CallerStreamGuard inner{stream(0x2000)};
    EXPECT_EQ(getCallerStream(), std::optional{stream(0x2000)});
    {
      const CallerStreamGuard innermost{nullptr};
      EXPECT_EQ(getCallerStream(), std::optional<cudaStream_t>{nullptr});
    }
    EXPECT_EQ(getCallerStream(), std::optional{stream(0x2000)});
  }
  EXPECT_EQ(getCallerStream(), std::optional{stream(0x1000)});
}

TEST(CallerStream, IsAChoiceOfOneThread) {
  const CallerStreamGuard guard{stream(0x1000)};
  std::optional<cudaStream_t> before{stream(0xdead)};
  std::optional<cudaStream_t> within;
  std::thread other{[&] {
    before = getCallerStream();
    const CallerStreamGuard others{stream(0x3000)};
    within = getCallerStream();
  }};
  other.join();
  EXPECT_EQ(before, std::nullopt);
  EXPECT_EQ(within, std::optional{stream(0x3000)});
  EXPECT_EQ(getCallerStream(), std::optional{stream(0x1000)});
}

TEST(CallerStream, IsRestoredWhenAnExceptionLeavesTheGuardsScope) {
  try {
    const CallerStreamGuard guard{stream(0x1000)};
    throw 1;
  } catch (int) {
  }
  EXPECT_EQ(getCallerStream(), std::nullopt);
}

}  // namespace
