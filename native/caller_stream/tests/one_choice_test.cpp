// One choice over a program and two libraries that were linked independently of each other.
#include <gtest/gtest.h>

#include "chooser.h"
#include "fake_streams.h"
#include "observer.h"

namespace {

using caller_stream_tests::stream;
using executorch::extension::cuda::CallerStreamGuard;
using executorch::extension::cuda::getCallerStream;

TEST(OneChoice, WhatTheProgramChoosesALibraryObserves) {
  EXPECT_EQ(observeStream(), std::nullopt);
  const CallerStreamGuard guard{stream(0x1000)};
  EXPECT_EQ(observeStream(), std::optional{stream(0x1000)});
}

TEST(OneChoice, WhatALibraryChoosesTheProgramAndTheOtherLibraryObserve) {
  const std::optional<cudaStream_t> seen = withChosenStream(stream(0x2000), [] {
    EXPECT_EQ(getCallerStream(), std::optional{stream(0x2000)});
    EXPECT_EQ(observeStream(), std::optional{stream(0x2000)});
    const CallerStreamGuard inner{stream(0x3000)};
    EXPECT_EQ(observeStream(), std::optional{stream(0x3000)});
  });
  EXPECT_EQ(seen, std::optional{stream(0x2000)});
  EXPECT_EQ(observeStream(), std::nullopt);
}

TEST(OneChoice, GuardsOfDifferentFilesNest) {
  const CallerStreamGuard outer{stream(0x1000)};
  withChosenStream(nullptr,
                   [] { EXPECT_EQ(observeStream(), std::optional<cudaStream_t>{nullptr}); });
  EXPECT_EQ(observeStream(), std::optional{stream(0x1000)});
}

}  // namespace
