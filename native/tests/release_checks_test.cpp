// ET_CHECK_MSG aborts, with its message, in the build that is shipped: optimized and with NDEBUG.
#include <executorch/runtime/core/freeable_buffer.h>
#include <executorch/runtime/platform/assert.h>
#include <gtest/gtest.h>

#include <cassert>

TEST(ReleaseChecksDeathTest, CheckMsgIsAlive) {
#if !defined(NDEBUG) || !defined(__OPTIMIZE__)
  GTEST_SKIP() << "only the release build shows it; this one has no NDEBUG, or no optimization";
#else
  const int answer = 41;
  assert(answer == 42);  // NDEBUG is in force: this one is gone
  EXPECT_DEATH(ET_CHECK_MSG(answer == 42, "the answer is %d", answer),
               "answer == 42\\): the answer is 41");
  const executorch::runtime::FreeableBuffer foreign(uint64_t{1}, 1, nullptr);
  EXPECT_DEATH(static_cast<void>(foreign.data()), "please use the data_uint64_type");
#endif
}
