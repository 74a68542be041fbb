// The fault itself: this program holds a private copy of the code, so the library observes nothing
// of its choice.
#include <gtest/gtest.h>

#include "fake_streams.h"
#include "observer.h"

namespace {

using caller_stream_tests::stream;
using executorch::extension::cuda::CallerStreamGuard;
using executorch::extension::cuda::getCallerStream;

TEST(Duplicate, TheLibraryDoesNotSeeWhatTheProgramChose) {
  const CallerStreamGuard guard{stream(0x1000)};
  EXPECT_EQ(getCallerStream(), std::optional{stream(0x1000)});
  EXPECT_EQ(observeStream(), std::nullopt)
      << "this program was linked without its private copy: the test shows nothing";
}

}  // namespace
