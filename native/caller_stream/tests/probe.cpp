// Prints what one thread sees through six changes of its choice. The same text is due from every
// libextension_cuda.so, so a difference between two of them is a difference of their binary
// interface.
#include <executorch/extension/cuda/caller_stream.h>

#include <cstdint>
#include <cstdio>

#include "fake_streams.h"

namespace {

using caller_stream_tests::perThread;
using caller_stream_tests::stream;
using executorch::extension::cuda::CallerStreamGuard;
using executorch::extension::cuda::getCallerStream;

void print(const char* when) {
  const std::optional<cudaStream_t> seen = getCallerStream();
  if (seen) {
    std::printf("%s: 0x%jx\n", when,
                static_cast<std::uintmax_t>(reinterpret_cast<std::uintptr_t>(*seen)));
  } else {
    std::printf("%s: none\n", when);
  }
}

}  // namespace

int main() {
  print("no guard");
  {
    // A word before and after each guard: a library that took the guard for larger than it is would
    // write over one.
    struct {
      std::uintptr_t before = 0x5555;
      CallerStreamGuard guard{stream(0x123456789a)};
      std::uintptr_t after = 0xaaaa;
    } framed;
    print("selected");
    {
      const CallerStreamGuard null{nullptr};
      print("explicit null");
      const CallerStreamGuard per_thread{perThread()};
      print("explicit per-thread");
    }
    print("restored");
    std::printf("frame: %s\n",
                framed.before == 0x5555 && framed.after == 0xaaaa ? "intact" : "overwritten");
  }
  print("after the guards");
  return 0;
}
