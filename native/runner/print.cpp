#include "print.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "elements.h"
#include "problem.h"

namespace linkcheck::runner {
namespace {

using executorch::aten::Tensor;

constexpr ssize_t kShownValues = 8;

std::string shape_and_count(const Tensor& tensor) {
  std::string text = "shape=[";
  for (ssize_t i = 0; i < tensor.dim(); ++i) {
    text += (i > 0 ? "," : "") + std::to_string(tensor.size(i));
  }
  return text + "] numel=" + std::to_string(tensor.numel());
}

}  // namespace

void print_input(size_t index, const Tensor& tensor) {
  std::fprintf(stderr, "  input[%zu] %s\n", index, shape_and_count(tensor).c_str());
}

void print_output(size_t index, const executorch::runtime::EValue& value) {
  if (!value.isTensor()) {
    std::fprintf(stderr, "output[%zu] is not a tensor\n", index);
    return;
  }
  const Tensor& tensor = value.toTensor();
  std::fprintf(stderr, "output[%zu] %s dtype=%d\n", index, shape_and_count(tensor).c_str(),
               static_cast<int>(tensor.scalar_type()));
  const auto size = element_size(tensor.scalar_type());
  const auto shown = static_cast<size_t>(std::min<ssize_t>(tensor.numel(), kShownValues));
  if (!size || shown == 0) return;
  std::vector<unsigned char> bytes(shown * *size);
  const cudaError_t copied =
      cudaMemcpy(bytes.data(), tensor.const_data_ptr(), bytes.size(), cudaMemcpyDefault);
  if (copied != cudaSuccess) {
    throw Problem(std::string("output could not be copied: ") + cudaGetErrorName(copied));
  }
  std::string line = "  first " + std::to_string(shown) + " values:";
  for (size_t i = 0; i < shown; ++i) {
    line += " " + format_element(tensor.scalar_type(), bytes.data() + i * *size);
  }
  std::fprintf(stderr, "%s\n", line.c_str());
}

}  // namespace linkcheck::runner
