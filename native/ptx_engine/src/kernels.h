// The kernels, as PTX that the driver compiles, and how they are launched: through driver functions
// that are looked up, so that nothing links libcuda and no CUDA compiler is needed.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace ptx_engine {

enum class Arithmetic : uint32_t { kCopy = 0, kAdd = 1, kMultiply = 2 };

// Thread: any. It works on whatever GPU is current.
class Kernels {
 public:
  // Null when the driver refuses the PTX or lacks a function; why is on stderr.
  static const Kernels* instance();

  // out[i] = a[i] op (b == nullptr ? scalar : b[i]), float, for i below count.
  bool apply(CUstream stream, Arithmetic arithmetic, const void* a, const void* b, float scalar,
             void* out, uint32_t count) const;
  bool spin(CUstream stream, uint64_t nanoseconds) const;
  // The current GPU's flags of multiprocessors: kFlags words, set to 1 by apply().
  static constexpr size_t kFlags = 1024;
  CUdeviceptr flags() const;

 private:
  bool load();

  CUresult (*launch_)(CUfunction, unsigned int, unsigned int, unsigned int, unsigned int,
                      unsigned int, unsigned int, unsigned int, CUstream, void**, void**) = nullptr;
  CUresult (*get_global_)(CUdeviceptr*, size_t*, CUlibrary, const char*) = nullptr;
  CUlibrary library_ = nullptr;
  CUkernel apply_ = nullptr;
  CUkernel spin_ = nullptr;
};

}  // namespace ptx_engine
