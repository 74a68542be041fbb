// The part of the TensorRT runtime interface that the engine adapter calls, declared from its
// public documentation. It is not NVIDIA's header and not binary compatible with TensorRT: the
// engine adapter compiles against either one.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#define NV_TENSORRT_MAJOR 10
#define NV_TENSORRT_MINOR 16
#define NV_TENSORRT_VERSION 101600

namespace nvinfer1 {

using AsciiChar = char;

class Dims64 {
 public:
  static constexpr int32_t MAX_DIMS{8};
  int32_t nbDims;
  int64_t d[MAX_DIMS];
};
using Dims = Dims64;

enum class DataType : int32_t {
  kFLOAT = 0,
  kHALF = 1,
  kINT8 = 2,
  kINT32 = 3,
  kBOOL = 4,
  kUINT8 = 5,
  kFP8 = 6,
  kBF16 = 7,
  kINT64 = 8,
  kINT4 = 9
};
enum class TensorIOMode : int32_t { kNONE = 0, kINPUT = 1, kOUTPUT = 2 };
enum class TensorLocation : int32_t { kDEVICE = 0, kHOST = 1 };
enum class TensorFormat : int32_t { kLINEAR = 0, kCHW2 = 1, kHWC8 = 2 };
enum class OptProfileSelector : int32_t { kMIN = 0, kOPT = 1, kMAX = 2 };

class ILogger {
 public:
  enum class Severity : int32_t {
    kINTERNAL_ERROR = 0,
    kERROR = 1,
    kWARNING = 2,
    kINFO = 3,
    kVERBOSE = 4
  };
  virtual void log(Severity severity, AsciiChar const* message) noexcept = 0;
  ILogger() = default;
  virtual ~ILogger() = default;

 protected:
  ILogger(ILogger const&) = default;
  ILogger& operator=(ILogger const&) & = default;
};

class IExecutionContext {
 public:
  virtual ~IExecutionContext() noexcept = default;
  virtual bool setInputShape(char const* name, Dims const& shape) noexcept = 0;
  virtual bool setTensorAddress(char const* name, void* address) noexcept = 0;
  virtual Dims getTensorShape(char const* name) const noexcept = 0;
  virtual int32_t inferShapes(int32_t maxNames, char const** names) noexcept = 0;
  virtual bool enqueueV3(cudaStream_t stream) noexcept = 0;
};

class ICudaEngine {
 public:
  virtual ~ICudaEngine() noexcept = default;
  virtual int32_t getNbIOTensors() const noexcept = 0;
  virtual char const* getIOTensorName(int32_t index) const noexcept = 0;
  virtual TensorIOMode getTensorIOMode(char const* name) const noexcept = 0;
  virtual DataType getTensorDataType(char const* name) const noexcept = 0;
  virtual TensorFormat getTensorFormat(char const* name) const noexcept = 0;
  virtual TensorLocation getTensorLocation(char const* name) const noexcept = 0;
  virtual Dims getTensorShape(char const* name) const noexcept = 0;
  virtual Dims getProfileShape(char const* name, int32_t profile,
                               OptProfileSelector select) const noexcept = 0;
  virtual int32_t getNbOptimizationProfiles() const noexcept = 0;
  virtual bool isShapeInferenceIO(char const* name) const noexcept = 0;
  virtual char const* getAliasedInputTensor(char const* outputName) const noexcept = 0;
  virtual int64_t getStreamableWeightsSize() const noexcept = 0;
  virtual bool setWeightStreamingBudgetV2(int64_t bytes) noexcept = 0;
  virtual int64_t getWeightStreamingBudgetV2() const noexcept = 0;
  virtual int64_t getWeightStreamingAutomaticBudget() const noexcept = 0;
  virtual int64_t getWeightStreamingScratchMemorySize() const noexcept = 0;
  virtual IExecutionContext* createExecutionContext() noexcept = 0;
};

class IRuntime {
 public:
  virtual ~IRuntime() noexcept = default;
  virtual ICudaEngine* deserializeCudaEngine(void const* blob, std::size_t size) noexcept = 0;
};

}  // namespace nvinfer1

extern "C" __attribute__((visibility("default"))) void* createInferRuntime_INTERNAL(
    void* logger, int32_t version) noexcept;

namespace nvinfer1 {
inline IRuntime* createInferRuntime(ILogger& logger) noexcept {
  return static_cast<IRuntime*>(createInferRuntime_INTERNAL(&logger, NV_TENSORRT_VERSION));
}
}  // namespace nvinfer1
