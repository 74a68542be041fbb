// The calls that upstream's delegate makes in one execute of device-resident tensors, in its order,
// on the same engine: the line to beat. Written from a description of its behaviour; it is none of
// its code, has its locking and its single context, and leaves its error handling out.
#pragma once

#include <NvInfer.h>
#include <cuda_runtime_api.h>
#include <executorch/runtime/core/evalue.h>

#include <memory>
#include <mutex>
#include <string>

namespace benchmark {

class UpstreamPath {
 public:
  // An engine with one input and one output. Throws std::runtime_error.
  explicit UpstreamPath(const std::string& plan);
  ~UpstreamPath();

  // False when a call fails.
  bool execute(executorch::runtime::EValue** values);

 private:
  bool bind(const char* name, const executorch::aten::Tensor& tensor, bool is_input);

  std::unique_ptr<nvinfer1::IRuntime> runtime_;
  std::unique_ptr<nvinfer1::ICudaEngine> engine_;
  std::unique_ptr<nvinfer1::IExecutionContext> context_;
  std::string input_;
  std::string output_;
  std::mutex mutex_;
  cudaEvent_t done_ = nullptr;
  bool in_flight_ = false;
};

}  // namespace benchmark
