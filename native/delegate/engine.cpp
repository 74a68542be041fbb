#include "engine.h"

#include <NvInfer.h>
#include <executorch/runtime/platform/log.h>

#include <algorithm>
#include <string>
#include <utility>

namespace linkcheck::trt {
namespace {

using executorch::aten::ScalarType;

// TensorRT keeps the first logger of a process for good, so there is one, and it is never
// destroyed.
class Logger final : public nvinfer1::ILogger {
 public:
  static Logger& instance() {
    static Logger* logger = new Logger();
    return *logger;
  }

  void log(Severity severity, nvinfer1::AsciiChar const* message) noexcept override {
    if (severity == Severity::kINTERNAL_ERROR || severity == Severity::kERROR) {
      ET_LOG(Error, "TensorRT: %s", message);
    } else if (severity == Severity::kWARNING) {
      ET_LOG(Info, "TensorRT warning: %s", message);
    }
  }
};

struct ElementType {
  ScalarType dtype;
  size_t size;
};

// Undefined for a type that no ExecuTorch tensor holds.
ElementType element_type(nvinfer1::DataType type) {
  switch (type) {
    case nvinfer1::DataType::kFLOAT:
      return {ScalarType::Float, 4};
    case nvinfer1::DataType::kHALF:
      return {ScalarType::Half, 2};
    case nvinfer1::DataType::kBF16:
      return {ScalarType::BFloat16, 2};
    case nvinfer1::DataType::kINT32:
      return {ScalarType::Int, 4};
    case nvinfer1::DataType::kINT64:
      return {ScalarType::Long, 8};
    case nvinfer1::DataType::kINT8:
      return {ScalarType::Char, 1};
    case nvinfer1::DataType::kUINT8:
      return {ScalarType::Byte, 1};
    case nvinfer1::DataType::kBOOL:
      return {ScalarType::Bool, 1};
    default:
      return {ScalarType::Undefined, 0};
  }
}

Shape to_shape(const nvinfer1::Dims& dims) {
  Shape shape;
  shape.rank = dims.nbDims < 0 || dims.nbDims > Shape::kMaxRank ? -1 : dims.nbDims;
  for (int32_t i = 0; i < shape.rank; ++i) shape.sizes[static_cast<size_t>(i)] = dims.d[i];
  return shape;
}

nvinfer1::Dims to_dims(const Shape& shape) {
  nvinfer1::Dims dims{};
  dims.nbDims = shape.rank;
  for (int32_t i = 0; i < shape.rank; ++i) dims.d[i] = shape.sizes[static_cast<size_t>(i)];
  return dims;
}

Failure invalid(std::string message) { return {Error::InvalidProgram, std::move(message)}; }

// What the delegate cannot serve is refused when the engine is loaded, not in the middle of a run.
Status check_supported(const nvinfer1::ICudaEngine& engine, const TensorDescription& tensor) {
  const char* name = tensor.name.c_str();
  if (tensor.dtype == ScalarType::Undefined) {
    return invalid("tensor " + tensor.name + " has a type that ExecuTorch does not have");
  }
  if (engine.isShapeInferenceIO(name)) {
    return invalid("tensor " + tensor.name + " holds a shape; such tensors are not supported");
  }
  if (engine.getTensorLocation(name) != nvinfer1::TensorLocation::kDEVICE) {
    return invalid("tensor " + tensor.name + " must be in host memory; that is not supported");
  }
  if (engine.getTensorFormat(name) != nvinfer1::TensorFormat::kLINEAR) {
    return invalid("tensor " + tensor.name + " is not in the linear layout");
  }
  if (tensor.is_input && (tensor.minimum.rank < 0 || tensor.maximum.rank < 0)) {
    return invalid("input " + tensor.name + " has no bounds in profile 0");
  }
  return {};
}

Outcome<TensorDescription> describe(const nvinfer1::ICudaEngine& engine, int32_t index) {
  const char* name = engine.getIOTensorName(index);
  if (name == nullptr)
    return invalid("the engine does not name its tensor " + std::to_string(index));
  TensorDescription tensor;
  tensor.name = name;
  tensor.is_input = engine.getTensorIOMode(name) == nvinfer1::TensorIOMode::kINPUT;
  const ElementType type = element_type(engine.getTensorDataType(name));
  tensor.dtype = type.dtype;
  tensor.element_size = type.size;
  tensor.shape = to_shape(engine.getTensorShape(name));
  if (tensor.is_input) {
    tensor.minimum = to_shape(engine.getProfileShape(name, 0, nvinfer1::OptProfileSelector::kMIN));
    tensor.maximum = to_shape(engine.getProfileShape(name, 0, nvinfer1::OptProfileSelector::kMAX));
  } else if (const char* input = engine.getAliasedInputTensor(name)) {
    tensor.aliased_input = input;
  }
  Status status = check_supported(engine, tensor);
  if (!status.ok()) return std::move(status.failure());
  return tensor;
}

// Fills in what was applied: nothing when the engine streams no weights.
Status apply_budget(nvinfer1::ICudaEngine& engine, std::optional<int64_t> requested,
                    std::optional<int64_t>& effective) {
  const int64_t streamable = engine.getStreamableWeightsSize();
  if (streamable <= 0) {
    if (requested) {
      ET_LOG(Error,
             "TensorRTBackend::init: weight_streaming_budget has no effect, the engine streams no "
             "weights");
    }
    return {};
  }
  int64_t budget =
      requested ? std::min(*requested, streamable) : engine.getWeightStreamingAutomaticBudget();
  bool applied = engine.setWeightStreamingBudgetV2(budget);
  if (!applied && !requested) {
    ET_LOG(Info, "TensorRTBackend::init: automatic weight-streaming budget %lld refused, using 0",
           static_cast<long long>(budget));
    budget = 0;
    applied = engine.setWeightStreamingBudgetV2(budget);
  }
  if (!applied) {
    return invalid("weight-streaming budget of " + std::to_string(budget) + " bytes was refused");
  }
  ET_LOG(Info,
         "TensorRTBackend::init: weight-streaming budget %lld of %lld bytes, scratch %lld bytes",
         static_cast<long long>(budget), static_cast<long long>(streamable),
         static_cast<long long>(engine.getWeightStreamingScratchMemorySize()));
  effective = budget;
  return {};
}

}  // namespace

struct Engine::State {
  // In this order: an engine dies before its runtime.
  std::unique_ptr<nvinfer1::IRuntime> runtime;
  std::unique_ptr<nvinfer1::ICudaEngine> engine;
  std::vector<TensorDescription> tensors;
  std::optional<int64_t> budget;  // nothing: it streams no weights
  bool budget_is_automatic = false;
};

struct EngineContext::State {
  std::unique_ptr<nvinfer1::IExecutionContext> context;
};

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::~Engine() = default;

Outcome<std::shared_ptr<Engine>> Engine::load(const void* data, size_t size,
                                              std::optional<int64_t> budget) {
  auto state = std::make_unique<State>();
  state->runtime.reset(nvinfer1::createInferRuntime(Logger::instance()));
  if (state->runtime == nullptr) return invalid("TensorRT could not be started");
  state->engine.reset(state->runtime->deserializeCudaEngine(data, size));
  if (state->engine == nullptr) {
    return Failure{Error::DelegateInvalidCompatibility,
                   "TensorRT refused the engine: it is damaged, or made by another TensorRT "
                   "version or for another GPU (the lines above say which)"};
  }
  Status status = apply_budget(*state->engine, budget, state->budget);
  state->budget_is_automatic = !budget;
  if (!status.ok()) return std::move(status.failure());
  for (int32_t i = 0; i < state->engine->getNbIOTensors(); ++i) {
    auto tensor = describe(*state->engine, i);
    if (!tensor.ok()) return std::move(tensor.failure());
    state->tensors.push_back(std::move(tensor.value()));
  }
  return std::shared_ptr<Engine>(new Engine(std::move(state)));
}

const std::vector<TensorDescription>& Engine::tensors() const { return state_->tensors; }

bool Engine::has_budget(std::optional<int64_t> requested) const {
  if (!state_->budget) return true;
  // What TensorRT chose once it would choose from other free memory now.
  if (!requested) return state_->budget_is_automatic;
  return std::min(*requested, state_->engine->getStreamableWeightsSize()) == *state_->budget;
}

Outcome<std::unique_ptr<EngineContext>> Engine::create_context() {
  auto state = std::make_unique<EngineContext::State>();
  state->context.reset(state_->engine->createExecutionContext());
  if (state->context == nullptr) return invalid("TensorRT could not make an execution context");
  return std::unique_ptr<EngineContext>(new EngineContext(std::move(state)));
}

bool Engine::is_available() {
  const std::unique_ptr<nvinfer1::IRuntime> runtime(
      nvinfer1::createInferRuntime(Logger::instance()));
  return runtime != nullptr;
}

EngineContext::EngineContext(std::unique_ptr<State> state) : state_(std::move(state)) {}
EngineContext::~EngineContext() = default;

bool EngineContext::set_input_shape(const TensorDescription& tensor, const Shape& shape) {
  return state_->context->setInputShape(tensor.name.c_str(), to_dims(shape));
}

bool EngineContext::set_address(const TensorDescription& tensor, void* address) {
  return state_->context->setTensorAddress(tensor.name.c_str(), address);
}

bool EngineContext::infer_shapes() { return state_->context->inferShapes(0, nullptr) == 0; }

Shape EngineContext::shape_of(const TensorDescription& tensor) const {
  return to_shape(state_->context->getTensorShape(tensor.name.c_str()));
}

bool EngineContext::enqueue(cudaStream_t stream) { return state_->context->enqueueV3(stream); }

}  // namespace linkcheck::trt
