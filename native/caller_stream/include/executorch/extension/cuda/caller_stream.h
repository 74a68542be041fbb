// The CUDA stream that a caller chose for its thread, shared by every CUDA delegate of a process.
//
// Bundled stand-in for ExecuTorch's header of the same path: same names, same mangling, same
// layout, so that a program built against either library runs against the other. Not CUDA itself:
// nothing here enqueues, waits or needs the toolkit, because a stream is only an address to this
// library.
#pragma once

#include <optional>
#include <type_traits>

// The two declarations that CUDA's driver_types.h makes. Repeating a typedef is allowed, so either
// include order works.
struct CUstream_st;
typedef CUstream_st* cudaStream_t;

#if !defined(EXECUTORCH_EXTENSION_CUDA_API)
#define EXECUTORCH_EXTENSION_CUDA_API __attribute__((visibility("default")))
#endif

namespace executorch::extension::cuda {

/// The stream of this thread's innermost living CallerStreamGuard, or nothing when the thread has
/// none.
///
/// A null stream and cudaStreamPerThread are streams like any other here: chosen, they are returned
/// as chosen. Only an empty optional means "the caller did not say", and then each backend takes
/// its own default.
[[nodiscard]] EXECUTORCH_EXTENSION_CUDA_API std::optional<cudaStream_t> getCallerStream();

/// Chooses a stream for the calling thread from construction to destruction, then brings back what
/// was chosen before.
///
/// Thread: the choice holds on the constructing thread alone; destroy the guard on that thread,
/// innermost first. Ownership: none. The stream must outlive the guard, and work enqueued under the
/// guard may outlive both.
class EXECUTORCH_EXTENSION_CUDA_API CallerStreamGuard final {
 public:
  explicit CallerStreamGuard(cudaStream_t stream);
  ~CallerStreamGuard();

  // Neither copied nor moved: two guards that restore the same earlier choice would undo each
  // other.
  CallerStreamGuard(const CallerStreamGuard&) = delete;
  CallerStreamGuard& operator=(const CallerStreamGuard&) = delete;
  CallerStreamGuard(CallerStreamGuard&&) = delete;
  CallerStreamGuard& operator=(CallerStreamGuard&&) = delete;

 private:
  std::optional<cudaStream_t> previous_;
};

// What the binary interface rests on. The optional is returned in registers only while it is
// trivially copyable and destructible, and libstdc++'s two string ABIs do not touch such a type;
// callers reserve the guard's storage themselves, so its size and alignment are part of the
// interface as well.
static_assert(std::is_trivially_copyable_v<std::optional<cudaStream_t>> &&
                  std::is_trivially_destructible_v<std::optional<cudaStream_t>>,
              "the caller's stream must cross the library boundary in registers");
static_assert(sizeof(std::optional<cudaStream_t>) == 2 * sizeof(void*) &&
                  alignof(std::optional<cudaStream_t>) == alignof(void*),
              "a stream and its flag: the layout ExecuTorch's library was built with");
static_assert(sizeof(CallerStreamGuard) == sizeof(std::optional<cudaStream_t>) &&
                  alignof(CallerStreamGuard) == alignof(std::optional<cudaStream_t>) &&
                  std::is_standard_layout_v<CallerStreamGuard> &&
                  !std::is_polymorphic_v<CallerStreamGuard>,
              "the guard is its earlier choice and nothing else");

}  // namespace executorch::extension::cuda
