// A stand-in for libnvinfer on a real GPU: the simulator's plans, run as PTX kernels. It computes
// with float only, and an engine takes as many bytes of device memory as its plan has.
#include <cuda_runtime_api.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "NvInfer.h"
#include "kernels.h"
#include "plan.h"

namespace ptx_engine {
namespace {

using gpusim::Opcode;
using gpusim::Plan;
using gpusim::PlanOperation;
using gpusim::PlanTensor;
using nvinfer1::Dims;
using Severity = nvinfer1::ILogger::Severity;

constexpr Dims kBadDims{-1, {}};
nvinfer1::ILogger* process_logger = nullptr;

void log_error(const char* message) {
  if (process_logger != nullptr) process_logger->log(Severity::kERROR, message);
}

int64_t volume(const Dims& dims) {
  int64_t count = 1;
  for (int32_t i = 0; i < dims.nbDims; ++i) count *= dims.d[i];
  return count;
}

bool is_dynamic(const Dims& dims) {
  for (int32_t i = 0; i < dims.nbDims; ++i) {
    if (dims.d[i] < 0) return true;
  }
  return false;
}

// Few tensors, so a search is as fast as an index.
const PlanTensor* find(const Plan& plan, const char* name) {
  for (const PlanTensor& tensor : plan.tensors) {
    if (name != nullptr && tensor.name == name) return &tensor;
  }
  return nullptr;
}

struct DeviceMemory {
  void* memory = nullptr;
  ~DeviceMemory() { cudaFree(memory); }
};

struct EngineState {
  Plan plan;
  DeviceMemory weights;
};

class Context final : public nvinfer1::IExecutionContext {
 public:
  explicit Context(std::shared_ptr<EngineState> engine)
      : engine_(std::move(engine)),
        shapes_(engine_->plan.tensors.size(), kBadDims),
        addresses_(engine_->plan.tensors.size(), nullptr) {
    for (size_t i = 0; i < shapes_.size(); ++i) {
      const PlanTensor& tensor = engine_->plan.tensors[i];
      if (tensor.is_input && !is_dynamic(tensor.shape)) shapes_[i] = tensor.shape;
    }
  }

  bool setInputShape(char const* name, Dims const& shape) noexcept override {
    const PlanTensor* tensor = find(engine_->plan, name);
    if (tensor == nullptr || !tensor->is_input || shape.nbDims != tensor->shape.nbDims) {
      return false;
    }
    for (int32_t i = 0; i < shape.nbDims; ++i) {
      if (shape.d[i] < tensor->minimum.d[i] || shape.d[i] > tensor->maximum.d[i]) return false;
    }
    shapes_[index_of(tensor)] = shape;
    return true;
  }

  bool setTensorAddress(char const* name, void* address) noexcept override {
    const PlanTensor* tensor = find(engine_->plan, name);
    if (tensor == nullptr) return false;
    addresses_[index_of(tensor)] = address;
    return true;
  }

  Dims getTensorShape(char const* name) const noexcept override {
    const PlanTensor* tensor = find(engine_->plan, name);
    return tensor == nullptr ? kBadDims : shape_of(index_of(tensor));
  }

  int32_t inferShapes(int32_t, char const**) noexcept override {
    int32_t missing = 0;
    for (size_t i = 0; i < shapes_.size(); ++i) {
      if (engine_->plan.tensors[i].is_input && shapes_[i].nbDims < 0) ++missing;
    }
    return missing;
  }

  bool enqueueV3(cudaStream_t stream) noexcept override {
    const Kernels* kernels = Kernels::instance();
    if (kernels == nullptr) return false;
    for (const PlanOperation& operation : engine_->plan.operations) {
      if (!launch(*kernels, operation, stream)) {
        log_error("enqueueV3: a kernel could not be launched");
        return false;
      }
    }
    return true;
  }

 private:
  size_t index_of(const PlanTensor* tensor) const {
    return static_cast<size_t>(tensor - engine_->plan.tensors.data());
  }

  Dims shape_of(size_t index) const { return find_shape(engine_->plan, shapes_, index); }

  bool launch(const Kernels& kernels, const PlanOperation& operation, cudaStream_t stream) const {
    const bool two = operation.opcode == Opcode::kAdd || operation.opcode == Opcode::kMultiply;
    const bool add = operation.opcode == Opcode::kAdd || operation.opcode == Opcode::kAddScalar;
    const Arithmetic arithmetic = operation.opcode == Opcode::kCopy ? Arithmetic::kCopy
                                  : add                             ? Arithmetic::kAdd
                                                                    : Arithmetic::kMultiply;
    return kernels.apply(stream, arithmetic, addresses_[operation.a],
                         two ? addresses_[operation.b] : nullptr,
                         static_cast<float>(operation.scalar), addresses_[operation.result],
                         static_cast<uint32_t>(volume(shape_of(operation.result))));
  }

  const std::shared_ptr<EngineState> engine_;
  std::vector<Dims> shapes_;
  std::vector<void*> addresses_;
};

class Engine final : public nvinfer1::ICudaEngine {
 public:
  explicit Engine(std::shared_ptr<EngineState> state) : state_(std::move(state)) {}

  int32_t getNbIOTensors() const noexcept override {
    return static_cast<int32_t>(state_->plan.tensors.size());
  }
  char const* getIOTensorName(int32_t index) const noexcept override {
    return state_->plan.tensors[static_cast<size_t>(index)].name.c_str();
  }
  nvinfer1::TensorIOMode getTensorIOMode(char const* name) const noexcept override {
    const PlanTensor* tensor = find(state_->plan, name);
    if (tensor == nullptr) return nvinfer1::TensorIOMode::kNONE;
    return tensor->is_input ? nvinfer1::TensorIOMode::kINPUT : nvinfer1::TensorIOMode::kOUTPUT;
  }
  nvinfer1::DataType getTensorDataType(char const*) const noexcept override {
    return nvinfer1::DataType::kFLOAT;
  }
  nvinfer1::TensorFormat getTensorFormat(char const*) const noexcept override {
    return nvinfer1::TensorFormat::kLINEAR;
  }
  nvinfer1::TensorLocation getTensorLocation(char const*) const noexcept override {
    return nvinfer1::TensorLocation::kDEVICE;
  }
  Dims getTensorShape(char const* name) const noexcept override {
    const PlanTensor* tensor = find(state_->plan, name);
    return tensor == nullptr ? kBadDims : tensor->shape;
  }
  Dims getProfileShape(char const* name, int32_t profile,
                       nvinfer1::OptProfileSelector select) const noexcept override {
    const PlanTensor* tensor = find(state_->plan, name);
    if (tensor == nullptr || profile != 0 || !tensor->is_input) return kBadDims;
    if (select == nvinfer1::OptProfileSelector::kMIN) return tensor->minimum;
    return select == nvinfer1::OptProfileSelector::kOPT ? tensor->optimum : tensor->maximum;
  }
  int32_t getNbOptimizationProfiles() const noexcept override { return 1; }
  bool isShapeInferenceIO(char const*) const noexcept override { return false; }
  char const* getAliasedInputTensor(char const* name) const noexcept override {
    const PlanTensor* tensor = find(state_->plan, name);
    if (tensor == nullptr || tensor->aliased_input.empty()) return nullptr;
    return tensor->aliased_input.c_str();
  }
  int64_t getStreamableWeightsSize() const noexcept override { return 0; }
  bool setWeightStreamingBudgetV2(int64_t) noexcept override { return false; }
  int64_t getWeightStreamingBudgetV2() const noexcept override { return 0; }
  int64_t getWeightStreamingAutomaticBudget() const noexcept override { return 0; }
  int64_t getWeightStreamingScratchMemorySize() const noexcept override { return 0; }
  nvinfer1::IExecutionContext* createExecutionContext() noexcept override {
    return new Context(state_);
  }

 private:
  const std::shared_ptr<EngineState> state_;
};

class Runtime final : public nvinfer1::IRuntime {
 public:
  nvinfer1::ICudaEngine* deserializeCudaEngine(void const* blob,
                                               std::size_t size) noexcept override {
    auto plan = gpusim::read_plan(blob, size);
    if (!plan) {
      log_error("deserializeCudaEngine: the bytes are no plan of this version");
      return nullptr;
    }
    for (const PlanTensor& tensor : plan->tensors) {
      if (tensor.type != nvinfer1::DataType::kFLOAT) {
        log_error("deserializeCudaEngine: only float is computed here");
        return nullptr;
      }
    }
    auto state = std::make_shared<EngineState>();
    state->plan = std::move(*plan);
    // As an engine's weights would: all of the plan goes to the device.
    if (cudaMalloc(&state->weights.memory, size) != cudaSuccess ||
        cudaMemcpy(state->weights.memory, blob, size, cudaMemcpyHostToDevice) != cudaSuccess) {
      log_error("deserializeCudaEngine: no device memory");
      return nullptr;
    }
    return new Engine(std::move(state));
  }
};

}  // namespace
}  // namespace ptx_engine

extern "C" void* createInferRuntime_INTERNAL(void* logger, int32_t) noexcept {
  if (ptx_engine::process_logger == nullptr) {
    ptx_engine::process_logger = static_cast<nvinfer1::ILogger*>(logger);
  }
  return static_cast<nvinfer1::IRuntime*>(new ptx_engine::Runtime());
}
