#include "cuda_device_allocator.h"

#include <cuda_runtime_api.h>

namespace linkcheck::runner {
namespace {

using executorch::runtime::Error;
using executorch::runtime::Result;
using executorch::runtime::etensor::DeviceIndex;
using executorch::runtime::etensor::DeviceType;

constexpr size_t kCudaAlignment = 256;  // what cudaMalloc guarantees

// Runs `body` with a device current and restores the former one.
template <typename Body>
cudaError_t on_device(DeviceIndex index, Body body) {
  int former = 0;
  cudaError_t result = cudaGetDevice(&former);
  if (result != cudaSuccess) return result;
  const int wanted = index < 0 ? former : index;
  if (wanted != former) result = cudaSetDevice(wanted);
  if (result != cudaSuccess) return result;
  result = body();
  if (wanted != former) cudaSetDevice(former);
  return result;
}

Error to_error(cudaError_t result) { return result == cudaSuccess ? Error::Ok : Error::Internal; }

}  // namespace

void CudaDeviceAllocator::register_if_absent() {
  if (executorch::runtime::get_device_allocator(DeviceType::CUDA) != nullptr) return;
  static auto* allocator = new CudaDeviceAllocator();  // the registry keeps it for good
  executorch::runtime::register_device_allocator(allocator);
}

Result<void*> CudaDeviceAllocator::allocate(size_t nbytes, DeviceIndex index, size_t alignment) {
  if (alignment > kCudaAlignment) return Error::InvalidArgument;
  void* memory = nullptr;
  const cudaError_t result = on_device(index, [&] { return cudaMalloc(&memory, nbytes); });
  if (result != cudaSuccess) return Error::MemoryAllocationFailed;
  return memory;
}

void CudaDeviceAllocator::deallocate(void* ptr, DeviceIndex index) {
  on_device(index, [&] { return cudaFree(ptr); });
}

Error CudaDeviceAllocator::copy_host_to_device(void* dst, const void* src, size_t nbytes,
                                               DeviceIndex index) {
  return to_error(
      on_device(index, [&] { return cudaMemcpy(dst, src, nbytes, cudaMemcpyHostToDevice); }));
}

Error CudaDeviceAllocator::copy_device_to_host(void* dst, const void* src, size_t nbytes,
                                               DeviceIndex index) {
  return to_error(
      on_device(index, [&] { return cudaMemcpy(dst, src, nbytes, cudaMemcpyDeviceToHost); }));
}

DeviceType CudaDeviceAllocator::device_type() const { return DeviceType::CUDA; }

}  // namespace linkcheck::runner
