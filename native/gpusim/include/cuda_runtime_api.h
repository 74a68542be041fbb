// The part of the CUDA runtime interface that this project calls, declared from its public
// documentation. It is not NVIDIA's header: it exists so that the same sources compile against
// gpusim where no toolkit is. Names, values and signatures equal the documented ones; a build with
// a toolkit uses the toolkit's header instead.
#pragma once

#include <cstddef>

#define CUDART_VERSION 13000
#define CUDART_CB

enum cudaError {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInitializationError = 3,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorIllegalState = 401,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchFailure = 719,
  cudaErrorNotSupported = 801,
  cudaErrorInvalidResourceConfiguration = 915,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
  cudaErrorCapturedEvent = 907,
  cudaErrorUnknown = 999
};
typedef enum cudaError cudaError_t;

enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4
};

enum cudaMemoryType {
  cudaMemoryTypeUnregistered = 0,
  cudaMemoryTypeHost = 1,
  cudaMemoryTypeDevice = 2,
  cudaMemoryTypeManaged = 3
};

struct cudaPointerAttributes {
  enum cudaMemoryType type;
  int device;
  void* devicePointer;
  void* hostPointer;
};

enum cudaDeviceAttr {
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrIntegrated = 18,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrPageableMemoryAccess = 88,
  cudaDevAttrCanUseHostPointerForRegisteredMem = 91,
  cudaDevAttrMemoryPoolsSupported = 115
};

enum cudaDriverEntryPointQueryResult {
  cudaDriverEntryPointSuccess = 0,
  cudaDriverEntryPointSymbolNotFound = 1,
  cudaDriverEntryPointVersionNotSufficent = 2
};

typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
typedef struct CUgraph_st* cudaGraph_t;
typedef struct CUgraphExec_st* cudaGraphExec_t;

enum cudaStreamCaptureStatus {
  cudaStreamCaptureStatusNone = 0,
  cudaStreamCaptureStatusActive = 1,
  cudaStreamCaptureStatusInvalidated = 2
};

enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal = 0,
  cudaStreamCaptureModeThreadLocal = 1,
  cudaStreamCaptureModeRelaxed = 2
};

#define cudaStreamLegacy (reinterpret_cast<cudaStream_t>(0x1))
#define cudaStreamPerThread (reinterpret_cast<cudaStream_t>(0x2))

#define cudaStreamDefault 0x00
#define cudaStreamNonBlocking 0x01
#define cudaEventDefault 0x00
#define cudaEventBlockingSync 0x01
#define cudaEventDisableTiming 0x02
#define cudaHostAllocDefault 0x00
#define cudaEnableDefault 0x00
#define cudaMemAttachGlobal 0x01

#define GPUSIM_API __attribute__((visibility("default")))

extern "C" {
GPUSIM_API cudaError_t cudaRuntimeGetVersion(int* version);
GPUSIM_API cudaError_t cudaGetDeviceCount(int* count);
GPUSIM_API cudaError_t cudaGetDevice(int* device);
GPUSIM_API cudaError_t cudaSetDevice(int device);
GPUSIM_API cudaError_t cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr attribute,
                                              int device);
GPUSIM_API cudaError_t cudaDeviceSynchronize();
GPUSIM_API cudaError_t cudaGetDriverEntryPointByVersion(
    const char* symbol, void** function, unsigned int version, unsigned long long flags,
    enum cudaDriverEntryPointQueryResult* status);

GPUSIM_API cudaError_t cudaGetLastError();
GPUSIM_API cudaError_t cudaPeekAtLastError();
GPUSIM_API const char* cudaGetErrorName(cudaError_t error);
GPUSIM_API const char* cudaGetErrorString(cudaError_t error);

GPUSIM_API cudaError_t cudaMalloc(void** pointer, size_t size);
GPUSIM_API cudaError_t cudaFree(void* pointer);
GPUSIM_API cudaError_t cudaMallocAsync(void** pointer, size_t size, cudaStream_t stream);
GPUSIM_API cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream);
GPUSIM_API cudaError_t cudaMallocManaged(void** pointer, size_t size, unsigned int flags);
GPUSIM_API cudaError_t cudaMallocHost(void** pointer, size_t size);
GPUSIM_API cudaError_t cudaHostAlloc(void** pointer, size_t size, unsigned int flags);
GPUSIM_API cudaError_t cudaFreeHost(void* pointer);
GPUSIM_API cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes* attributes,
                                                const void* pointer);

GPUSIM_API cudaError_t cudaMemcpy(void* destination, const void* source, size_t count,
                                  enum cudaMemcpyKind kind);
GPUSIM_API cudaError_t cudaMemcpyAsync(void* destination, const void* source, size_t count,
                                       enum cudaMemcpyKind kind, cudaStream_t stream);
GPUSIM_API cudaError_t cudaMemsetAsync(void* pointer, int value, size_t count, cudaStream_t stream);

GPUSIM_API cudaError_t cudaStreamCreate(cudaStream_t* stream);
GPUSIM_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags);
GPUSIM_API cudaError_t cudaStreamDestroy(cudaStream_t stream);
GPUSIM_API cudaError_t cudaStreamSynchronize(cudaStream_t stream);
GPUSIM_API cudaError_t cudaStreamQuery(cudaStream_t stream);
GPUSIM_API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                           unsigned int flags);
GPUSIM_API cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device);

GPUSIM_API cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode);
GPUSIM_API cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
GPUSIM_API cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                             enum cudaStreamCaptureStatus* status);
GPUSIM_API cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode* mode);
GPUSIM_API cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                            unsigned long long flags);
GPUSIM_API cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
GPUSIM_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
GPUSIM_API cudaError_t cudaGraphDestroy(cudaGraph_t graph);

GPUSIM_API cudaError_t cudaEventCreate(cudaEvent_t* event);
GPUSIM_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags);
GPUSIM_API cudaError_t cudaEventDestroy(cudaEvent_t event);
GPUSIM_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
GPUSIM_API cudaError_t cudaEventQuery(cudaEvent_t event);
GPUSIM_API cudaError_t cudaEventSynchronize(cudaEvent_t event);
}
