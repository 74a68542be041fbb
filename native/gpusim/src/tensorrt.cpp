// The simulated TensorRT: runtime, engine and execution context over the simulator. It builds no
// engines.
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "NvInfer.h"
#include "elements.h"
#include "held_call.h"
#include "plan.h"
#include "simulator.h"

namespace gpusim {
namespace {

using nvinfer1::Dims;
using Severity = nvinfer1::ILogger::Severity;

constexpr Dims kBadDims{-1, {}};

// TensorRT keeps the first logger it is given for the whole process: a logger that dies earlier
// than the process is a bug, and the address sanitizer finds it here as it would there.
nvinfer1::ILogger* process_logger = nullptr;

void log(Severity severity, const std::string& message) {
  if (process_logger != nullptr) process_logger->log(severity, message.c_str());
}

// Answers true when the call may go on. Counts it and lets it fail on demand.
bool enter(Simulator& simulator, const char* name) {
  const cudaError_t error = simulator.call_log().enter(name);
  if (error == cudaSuccess) return true;
  log(Severity::kERROR, std::string(name) + " was told to fail");
  return false;
}

int64_t volume(const Dims& dims) {
  int64_t count = 1;
  for (int32_t i = 0; i < dims.nbDims; ++i) count *= dims.d[i];
  return count;
}

bool same(const Dims& a, const Dims& b) {
  if (a.nbDims != b.nbDims) return false;
  for (int32_t i = 0; i < a.nbDims; ++i) {
    if (a.d[i] != b.d[i]) return false;
  }
  return true;
}

struct EngineState {
  Plan plan;
  int device = 0;
  int64_t budget = 0;
  int contexts = 0;
  std::map<std::string, size_t> index;

  const PlanTensor* find(const char* name) const {
    if (name == nullptr) return nullptr;
    const auto found = index.find(name);
    return found == index.end() ? nullptr : &plan.tensors[found->second];
  }
};

// One resolved operation: addresses and sizes are fixed when it is enqueued, as a real launch
// would.
struct Kernel {
  PlanOperation operation;
  nvinfer1::DataType type = nvinfer1::DataType::kFLOAT;
  size_t count = 0;
  uintptr_t a = 0;
  uintptr_t b = 0;
  uintptr_t result = 0;
};

void run_kernel(Simulator& simulator, const Kernel& kernel) {
  const size_t item = element_size(kernel.type);
  const size_t size = kernel.count * item;
  std::vector<unsigned char> a(size);
  std::vector<unsigned char> b(size);
  simulator.read(kernel.a, a.data(), size, "kernel");
  const Opcode opcode = kernel.operation.opcode;
  if (opcode == Opcode::kAdd || opcode == Opcode::kMultiply) {
    simulator.read(kernel.b, b.data(), size, "kernel");
  } else {
    for (size_t i = 0; i < kernel.count; ++i) {
      store(kernel.type, kernel.operation.scalar, b.data() + i * item);
    }
  }
  if (opcode != Opcode::kCopy) {
    const bool add = opcode == Opcode::kAdd || opcode == Opcode::kAddScalar;
    for (size_t i = 0; i < kernel.count; ++i) {
      compute(kernel.type, add ? Arithmetic::kAdd : Arithmetic::kMultiply, a.data() + i * item,
              b.data() + i * item, a.data() + i * item);
    }
  }
  simulator.write(kernel.result, a.data(), size, "kernel");
}

class Context final : public nvinfer1::IExecutionContext {
 public:
  explicit Context(std::shared_ptr<EngineState> engine)
      : engine_(std::move(engine)),
        shapes_(engine_->plan.tensors.size(), kBadDims),
        addresses_(engine_->plan.tensors.size(), nullptr) {
    for (size_t i = 0; i < shapes_.size(); ++i) {
      const PlanTensor& tensor = engine_->plan.tensors[i];
      if (tensor.is_input && volume(tensor.shape) >= 0 && !is_dynamic(tensor.shape)) {
        shapes_[i] = tensor.shape;
      }
    }
  }

  ~Context() noexcept override {
    Simulator& simulator = Simulator::instance();
    const gpusim::Lock lock(simulator.mutex());
    check_idle(simulator, "destroyed");
    --engine_->contexts;
    --simulator.objects().contexts;
  }

  bool setInputShape(char const* name, Dims const& shape) noexcept override {
    Simulator& simulator = Simulator::instance();
    const gpusim::Lock lock(simulator.mutex());
    if (!enter(simulator, "IExecutionContext::setInputShape")) return false;
    const PlanTensor* tensor = engine_->find(name);
    if (tensor == nullptr || !tensor->is_input || !fits(*tensor, shape)) {
      log(Severity::kERROR, "setInputShape: the shape does not fit the profile");
      return false;
    }
    Dims& current = shapes_[engine_->index.at(name)];
    if (!same(current, shape)) check_idle(simulator, "given a new shape");
    current = shape;
    return true;
  }

  bool setTensorAddress(char const* name, void* address) noexcept override {
    Simulator& simulator = Simulator::instance();
    const gpusim::Lock lock(simulator.mutex());
    if (!enter(simulator, "IExecutionContext::setTensorAddress")) return false;
    if (engine_->find(name) == nullptr) return false;
    void*& current = addresses_[engine_->index.at(name)];
    if (current != address) check_idle(simulator, "given a new address");
    current = address;
    return true;
  }

  Dims getTensorShape(char const* name) const noexcept override {
    Simulator& simulator = Simulator::instance();
    const gpusim::Lock lock(simulator.mutex());
    if (!enter(simulator, "IExecutionContext::getTensorShape")) return kBadDims;
    if (engine_->find(name) == nullptr) return kBadDims;
    return shape_of(engine_->index.at(name));
  }

  int32_t inferShapes(int32_t maxNames, char const** names) noexcept override {
    Simulator& simulator = Simulator::instance();
    const gpusim::Lock lock(simulator.mutex());
    if (!enter(simulator, "IExecutionContext::inferShapes")) return -1;
    int32_t missing = 0;
    for (size_t i = 0; i < shapes_.size(); ++i) {
      const PlanTensor& tensor = engine_->plan.tensors[i];
      if (!tensor.is_input || shapes_[i].nbDims >= 0) continue;
      if (missing < maxNames && names != nullptr) names[missing] = tensor.name.c_str();
      ++missing;
    }
    return missing;
  }

  bool enqueueV3(cudaStream_t handle) noexcept override {
    pause_if_held("IExecutionContext::enqueueV3");
    Simulator& simulator = Simulator::instance();
    const gpusim::Lock lock(simulator.mutex());
    if (!enter(simulator, "IExecutionContext::enqueueV3")) return false;
    Stream* stream = simulator.resolve(handle);
    if (stream == nullptr) return false;
    if (stream->legacy) {
      log(Severity::kWARNING, "enqueueV3: the default stream may cost further synchronizations");
    }
    if (stream->device != engine_->device || simulator.current_device() != engine_->device) {
      simulator.faults().add(FaultKind::kWrongDevice,
                             "an engine is enqueued on a stream of another device");
      return false;
    }
    if (is_graphs_) {
      simulator.faults().add(FaultKind::kContextShared,
                             "an execution context that a graph holds is used again");
    }
    if (last_ && last_->stream != stream->id &&
        !simulator.scheduler().clock_before(*stream).covers(*last_)) {
      simulator.faults().add(FaultKind::kContextShared,
                             "one execution context is used from two streams at once");
    }
    std::vector<Kernel> kernels;
    for (const PlanOperation& operation : engine_->plan.operations) {
      const auto kernel = prepare(operation);
      if (!kernel) return false;
      kernels.push_back(*kernel);
    }
    for (const Kernel& kernel : kernels) launch(simulator, *stream, kernel);
    return true;
  }

 private:
  static bool is_dynamic(const Dims& dims) {
    for (int32_t i = 0; i < dims.nbDims; ++i) {
      if (dims.d[i] < 0) return true;
    }
    return false;
  }

  static bool fits(const PlanTensor& tensor, const Dims& shape) {
    if (shape.nbDims != tensor.shape.nbDims) return false;
    for (int32_t i = 0; i < shape.nbDims; ++i) {
      if (shape.d[i] < tensor.minimum.d[i] || shape.d[i] > tensor.maximum.d[i]) return false;
    }
    return true;
  }

  void check_idle(Simulator& simulator, const char* what) const {
    if (!last_ || simulator.known_complete(*last_)) return;
    simulator.faults().add(FaultKind::kLateWait, std::string("an execution context is ") + what +
                                                     " while its last work was not waited for");
  }

  // Of an output: its own dimensions, dynamic ones taken from the first operand of what writes it.
  Dims shape_of(size_t index) const {
    const PlanTensor& tensor = engine_->plan.tensors[index];
    if (tensor.is_input) return shapes_[index].nbDims >= 0 ? shapes_[index] : tensor.shape;
    Dims shape = tensor.shape;
    for (const PlanOperation& operation : engine_->plan.operations) {
      if (operation.result != index || operation.a == index) continue;
      const Dims source = shape_of(operation.a);
      for (int32_t i = 0; i < shape.nbDims && i < source.nbDims; ++i) {
        if (shape.d[i] < 0) shape.d[i] = source.d[i];
      }
      break;
    }
    return shape;
  }

  std::optional<Kernel> prepare(const PlanOperation& operation) const {
    Kernel kernel;
    kernel.operation = operation;
    kernel.type = engine_->plan.tensors[operation.result].type;
    const Dims shape = shape_of(operation.result);
    if (is_dynamic(shape) || volume(shape_of(operation.a)) != volume(shape) ||
        volume(shape_of(operation.b)) != volume(shape)) {
      log(Severity::kERROR, "enqueueV3: shapes are not known or do not agree");
      return std::nullopt;
    }
    kernel.count = static_cast<size_t>(volume(shape));
    for (const uint32_t index : {operation.a, operation.b, operation.result}) {
      if (addresses_[index] == nullptr) {
        log(Severity::kERROR,
            "enqueueV3: " + engine_->plan.tensors[index].name + " has no address");
        return std::nullopt;
      }
    }
    kernel.a = reinterpret_cast<uintptr_t>(addresses_[operation.a]);
    kernel.b = reinterpret_cast<uintptr_t>(addresses_[operation.b]);
    kernel.result = reinterpret_cast<uintptr_t>(addresses_[operation.result]);
    return kernel;
  }

  void launch(Simulator& simulator, Stream& stream, const Kernel& kernel) {
    const size_t size = kernel.count * element_size(kernel.type);
    std::vector<Access> accesses = {{kernel.a, size, false}, {kernel.result, size, true}};
    if (kernel.b != kernel.a) accesses.push_back({kernel.b, size, false});
    if (stream.capture) is_graphs_ = true;
    const Point point = simulator.enqueue(
        stream, "kernel", accesses, [&simulator, kernel, device = stream.device, sms = stream.sms] {
          simulator.kernel_log().add({device, sms.first, sms.count});
          run_kernel(simulator, kernel);
        });
    if (!stream.capture) last_ = point;
  }

  const std::shared_ptr<EngineState> engine_;
  std::vector<Dims> shapes_;
  std::vector<void*> addresses_;
  std::optional<Point> last_;
  bool is_graphs_ = false;  // a graph runs its work whenever it is launched
};

class Engine final : public nvinfer1::ICudaEngine {
 public:
  explicit Engine(std::shared_ptr<EngineState> state) : state_(std::move(state)) {}

  ~Engine() noexcept override {
    Simulator& simulator = Simulator::instance();
    const gpusim::Lock lock(simulator.mutex());
    if (state_->contexts != 0) {
      simulator.faults().add(FaultKind::kLateWait,
                             "an engine is destroyed before its execution contexts");
    }
    --simulator.objects().engines;
  }

  int32_t getNbIOTensors() const noexcept override {
    return static_cast<int32_t>(state_->plan.tensors.size());
  }
  char const* getIOTensorName(int32_t index) const noexcept override {
    if (index < 0 || index >= getNbIOTensors()) return nullptr;
    return state_->plan.tensors[static_cast<size_t>(index)].name.c_str();
  }
  nvinfer1::TensorIOMode getTensorIOMode(char const* name) const noexcept override {
    const PlanTensor* tensor = state_->find(name);
    if (tensor == nullptr) return nvinfer1::TensorIOMode::kNONE;
    return tensor->is_input ? nvinfer1::TensorIOMode::kINPUT : nvinfer1::TensorIOMode::kOUTPUT;
  }
  nvinfer1::DataType getTensorDataType(char const* name) const noexcept override {
    const PlanTensor* tensor = state_->find(name);
    return tensor == nullptr ? nvinfer1::DataType::kFLOAT : tensor->type;
  }
  nvinfer1::TensorFormat getTensorFormat(char const* name) const noexcept override {
    const PlanTensor* tensor = state_->find(name);
    return tensor == nullptr ? nvinfer1::TensorFormat::kLINEAR : tensor->format;
  }
  nvinfer1::TensorLocation getTensorLocation(char const*) const noexcept override {
    return nvinfer1::TensorLocation::kDEVICE;
  }
  Dims getTensorShape(char const* name) const noexcept override {
    const PlanTensor* tensor = state_->find(name);
    return tensor == nullptr ? kBadDims : tensor->shape;
  }
  Dims getProfileShape(char const* name, int32_t profile,
                       nvinfer1::OptProfileSelector select) const noexcept override {
    Simulator& simulator = Simulator::instance();
    const gpusim::Lock lock(simulator.mutex());
    if (!enter(simulator, "ICudaEngine::getProfileShape")) return kBadDims;
    const PlanTensor* tensor = state_->find(name);
    if (tensor == nullptr || profile != 0 || !tensor->is_input) return kBadDims;
    switch (select) {
      case nvinfer1::OptProfileSelector::kMIN:
        return tensor->minimum;
      case nvinfer1::OptProfileSelector::kOPT:
        return tensor->optimum;
      case nvinfer1::OptProfileSelector::kMAX:
        return tensor->maximum;
    }
    return kBadDims;
  }
  int32_t getNbOptimizationProfiles() const noexcept override { return 1; }
  bool isShapeInferenceIO(char const* name) const noexcept override {
    const PlanTensor* tensor = state_->find(name);
    return tensor != nullptr && tensor->shape_io;
  }
  char const* getAliasedInputTensor(char const* name) const noexcept override {
    const PlanTensor* tensor = state_->find(name);
    if (tensor == nullptr || tensor->aliased_input.empty()) return nullptr;
    return tensor->aliased_input.c_str();
  }
  int64_t getStreamableWeightsSize() const noexcept override {
    return state_->plan.streamable_weights;
  }
  bool setWeightStreamingBudgetV2(int64_t bytes) noexcept override {
    Simulator& simulator = Simulator::instance();
    const gpusim::Lock lock(simulator.mutex());
    if (!enter(simulator, "ICudaEngine::setWeightStreamingBudgetV2")) return false;
    if (state_->contexts != 0 || bytes < 0) return false;
    state_->budget = bytes;
    simulator.objects().last_weight_budget = bytes;
    return true;
  }
  int64_t getWeightStreamingBudgetV2() const noexcept override { return state_->budget; }
  int64_t getWeightStreamingAutomaticBudget() const noexcept override {
    return state_->plan.streamable_weights / 2;
  }
  int64_t getWeightStreamingScratchMemorySize() const noexcept override { return 0; }

  nvinfer1::IExecutionContext* createExecutionContext() noexcept override {
    pause_if_held("ICudaEngine::createExecutionContext");
    Simulator& simulator = Simulator::instance();
    const gpusim::Lock lock(simulator.mutex());
    if (!enter(simulator, "ICudaEngine::createExecutionContext")) return nullptr;
    if (!simulator.allows_unsafe_call()) return nullptr;
    ++state_->contexts;
    ++simulator.objects().contexts;
    return new Context(state_);
  }

 private:
  const std::shared_ptr<EngineState> state_;
};

class Runtime final : public nvinfer1::IRuntime {
 public:
  ~Runtime() noexcept override {
    Simulator& simulator = Simulator::instance();
    const gpusim::Lock lock(simulator.mutex());
    --simulator.objects().runtimes;
  }

  nvinfer1::ICudaEngine* deserializeCudaEngine(void const* blob,
                                               std::size_t size) noexcept override {
    pause_if_held("IRuntime::deserializeCudaEngine");
    Simulator& simulator = Simulator::instance();
    const gpusim::Lock lock(simulator.mutex());
    if (!enter(simulator, "IRuntime::deserializeCudaEngine")) return nullptr;
    auto plan = read_plan(blob, size);
    if (!plan) {
      log(Severity::kERROR, "deserializeCudaEngine: the bytes are no plan of this version");
      return nullptr;
    }
    auto state = std::make_shared<EngineState>();
    state->plan = std::move(*plan);
    state->device = simulator.current_device();
    for (size_t i = 0; i < state->plan.tensors.size(); ++i) {
      state->index[state->plan.tensors[i].name] = i;
    }
    ++simulator.objects().engines;
    log(Severity::kINFO, "deserializeCudaEngine: loaded " + std::to_string(size) + " bytes");
    log(Severity::kVERBOSE, "deserializeCudaEngine: done");
    return new Engine(std::move(state));
  }
};

}  // namespace
}  // namespace gpusim

extern "C" void* createInferRuntime_INTERNAL(void* logger, int32_t) noexcept {
  gpusim::Simulator& simulator = gpusim::Simulator::instance();
  const gpusim::Lock lock(simulator.mutex());
  if (gpusim::process_logger == nullptr) {
    gpusim::process_logger = static_cast<nvinfer1::ILogger*>(logger);
  }
  if (!gpusim::enter(simulator, "createInferRuntime")) return nullptr;
  ++simulator.objects().runtimes;
  return static_cast<nvinfer1::IRuntime*>(new gpusim::Runtime());
}
