#include "kernels.h"

#include <algorithm>
#include <cstdio>

namespace ptx_engine {
namespace {

constexpr unsigned int kBlockSize = 256;
constexpr unsigned int kMostBlocks = 4096;

constexpr char kPtx[] = R"(
.version 7.0
.target sm_70
.address_size 64

.visible .global .align 4 .b32 multiprocessors[1024];

.visible .entry apply(.param .u32 operation, .param .u64 a, .param .u64 b, .param .f32 scalar,
                      .param .u64 out, .param .u32 count)
{
  .reg .pred %done, %has_b, %is_add, %is_multiply;
  .reg .b32 %r<12>;
  .reg .b64 %d<12>;
  .reg .f32 %f<6>;

  mov.u32 %r0, %smid;
  and.b32 %r0, %r0, 1023;
  mul.wide.u32 %d0, %r0, 4;
  mov.u64 %d1, multiprocessors;
  add.u64 %d1, %d1, %d0;
  mov.u32 %r1, 1;
  st.global.u32 [%d1], %r1;

  ld.param.u32 %r2, [operation];
  ld.param.u64 %d2, [a];
  ld.param.u64 %d3, [b];
  ld.param.f32 %f0, [scalar];
  ld.param.u64 %d4, [out];
  ld.param.u32 %r3, [count];
  setp.ne.u64 %has_b, %d3, 0;
  setp.eq.u32 %is_add, %r2, 1;
  setp.eq.u32 %is_multiply, %r2, 2;
  mov.u32 %r4, %ctaid.x;
  mov.u32 %r5, %ntid.x;
  mov.u32 %r6, %tid.x;
  mad.lo.u32 %r7, %r4, %r5, %r6;
  mov.u32 %r8, %nctaid.x;
  mul.lo.u32 %r9, %r8, %r5;

next:
  setp.ge.u32 %done, %r7, %r3;
  @%done bra end;
  mul.wide.u32 %d5, %r7, 4;
  add.u64 %d6, %d2, %d5;
  ld.global.f32 %f1, [%d6];
  mov.f32 %f2, %f0;
  add.u64 %d7, %d3, %d5;
  @%has_b ld.global.f32 %f2, [%d7];
  @%is_add add.f32 %f1, %f1, %f2;
  @%is_multiply mul.f32 %f1, %f1, %f2;
  add.u64 %d8, %d4, %d5;
  st.global.f32 [%d8], %f1;
  add.u32 %r7, %r7, %r9;
  bra next;
end:
  ret;
}

.visible .entry spin(.param .u64 nanoseconds)
{
  .reg .pred %more;
  .reg .b64 %d<5>;

  ld.param.u64 %d0, [nanoseconds];
  mov.u64 %d1, %globaltimer;
again:
  mov.u64 %d2, %globaltimer;
  sub.u64 %d3, %d2, %d1;
  setp.lt.u64 %more, %d3, %d0;
  @%more bra again;
  ret;
}
)";

template <typename Function>
bool look_up(const char* name, unsigned int version, Function& function) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t result =
      cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &status);
  if (result != cudaSuccess || status != cudaDriverEntryPointSuccess) {
    std::fprintf(stderr, "ptx_engine: the driver has no %s\n", name);
    return false;
  }
  function = reinterpret_cast<Function>(found);
  return true;
}

bool succeeded(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return true;
  std::fprintf(stderr, "ptx_engine: %s failed: error %d\n", what, static_cast<int>(result));
  return false;
}

}  // namespace

const Kernels* Kernels::instance() {
  static const Kernels* const kernels = []() -> const Kernels* {
    auto* made = new Kernels();
    return made->load() ? made : nullptr;
  }();
  return kernels;
}

bool Kernels::load() {
  CUresult (*load_data)(CUlibrary*, const void*, CUjit_option*, void**, unsigned int,
                        CUlibraryOption*, void**, unsigned int) = nullptr;
  CUresult (*get_kernel)(CUkernel*, CUlibrary, const char*) = nullptr;
  constexpr unsigned int kLibraries = 12000;
  return look_up("cuLaunchKernel", 4000, launch_) &&
         look_up("cuLibraryGetGlobal", kLibraries, get_global_) &&
         look_up("cuLibraryLoadData", kLibraries, load_data) &&
         look_up("cuLibraryGetKernel", kLibraries, get_kernel) &&
         succeeded(load_data(&library_, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0),
                   "cuLibraryLoadData") &&
         succeeded(get_kernel(&apply_, library_, "apply"), "cuLibraryGetKernel(apply)") &&
         succeeded(get_kernel(&spin_, library_, "spin"), "cuLibraryGetKernel(spin)");
}

bool Kernels::apply(CUstream stream, Arithmetic arithmetic, const void* a, const void* b,
                    float scalar, void* out, uint32_t count) const {
  if (count == 0) return true;
  const unsigned int blocks = std::min((count - 1) / kBlockSize + 1, kMostBlocks);
  auto operation = static_cast<uint32_t>(arithmetic);
  void* parameters[] = {&operation, &a, &b, &scalar, &out, &count};
  return succeeded(launch_(reinterpret_cast<CUfunction>(apply_), blocks, 1, 1, kBlockSize, 1, 1, 0,
                           stream, parameters, nullptr),
                   "cuLaunchKernel");
}

bool Kernels::spin(CUstream stream, uint64_t nanoseconds) const {
  void* parameters[] = {&nanoseconds};
  return succeeded(launch_(reinterpret_cast<CUfunction>(spin_), 1, 1, 1, 1, 1, 1, 0, stream,
                           parameters, nullptr),
                   "cuLaunchKernel");
}

CUdeviceptr Kernels::flags() const {
  CUdeviceptr address = 0;
  size_t size = 0;
  if (!succeeded(get_global_(&address, &size, library_, "multiprocessors"), "cuLibraryGetGlobal")) {
    return 0;
  }
  return address;
}

}  // namespace ptx_engine
