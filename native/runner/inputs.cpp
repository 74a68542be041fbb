#include "inputs.h"

#include <executorch/extension/tensor/tensor_ptr_maker.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "elements.h"
#include "print.h"
#include "problem.h"

namespace linkcheck::runner {
namespace {

using executorch::runtime::EValue;
using executorch::runtime::MethodMeta;
using executorch::runtime::Tag;

std::vector<unsigned char> read_file(const std::string& path, size_t size) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Problem("cannot read " + path);
  std::vector<unsigned char> bytes{std::istreambuf_iterator<char>(file), {}};
  if (bytes.size() != size) {
    throw Problem(path + " has " + std::to_string(bytes.size()) + " bytes, the input takes " +
                  std::to_string(size));
  }
  return bytes;
}

EValue scalar_of(Tag tag, const std::string& name) {
  switch (tag) {
    case Tag::Int:
      return EValue(int64_t{1});
    case Tag::Double:
      return EValue(1.0);
    case Tag::Bool:
      return EValue(true);
    case Tag::None:
      return EValue();
    default:
      throw Problem(name + " is of a kind that the runner cannot make");
  }
}

// A copy in the memory of a GPU, made by whoever is ExecuTorch's allocator for it.
executorch::runtime::DeviceMemoryBuffer to_device(const std::vector<unsigned char>& bytes,
                                                  int device, const std::string& name) {
  using executorch::runtime::etensor::DeviceType;
  const auto index = static_cast<executorch::runtime::etensor::DeviceIndex>(device);
  auto buffer = require(executorch::runtime::DeviceMemoryBuffer::create(
                            std::max<size_t>(bytes.size(), 1), DeviceType::CUDA, index),
                        name);
  require_ok(executorch::runtime::get_device_allocator(DeviceType::CUDA)
                 ->copy_host_to_device(buffer.data(), bytes.data(), bytes.size(), index),
             name);
  return buffer;
}

}  // namespace

Inputs::Inputs(const MethodMeta& meta, const Flags& flags, int device) {
  std::optional<std::mt19937_64> random;
  if (flags.seed) random.emplace(*flags.seed);
  size_t next_file = 0;
  for (size_t i = 0; i < meta.num_inputs(); ++i) {
    const std::string name = "input " + std::to_string(i);
    const Tag tag = require(meta.input_tag(i), name);
    if (tag != Tag::Tensor) {
      values_.push_back(scalar_of(tag, name));
      continue;
    }
    const auto info = require(meta.input_tensor_meta(i), name);
    const auto size = element_size(info.scalar_type());
    if (!size) throw Problem(name + " has an element type that the runner does not know");
    std::vector<unsigned char>& bytes = bytes_.emplace_back();
    if (flags.inputs.empty()) {
      bytes.resize(info.nbytes());
      for (size_t at = 0; at < bytes.size(); at += *size) {
        fill_element(info.scalar_type(), random ? &*random : nullptr, bytes.data() + at);
      }
    } else {
      if (next_file == flags.inputs.size()) throw Problem("there is no file for " + name);
      bytes = read_file(flags.inputs[next_file++], info.nbytes());
    }
    void* data = bytes.data();
    if (flags.device_io) {
      if (info.is_memory_planned()) {
        throw Problem("--device_io: " + name + " is copied into a planned buffer by the runtime");
      }
      data = on_device_.emplace_back(to_device(bytes, device, name)).data();
    }
    tensors_.push_back(executorch::extension::from_blob(
        data, {info.sizes().begin(), info.sizes().end()}, info.scalar_type()));
    values_.emplace_back(*tensors_.back());
  }
  if (next_file < flags.inputs.size())
    throw Problem("--inputs names more files than there are inputs");
}

void Inputs::print() const {
  for (size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].isTensor()) print_input(i, values_[i].toTensor());
  }
}

void Inputs::set(executorch::runtime::Method& method) const {
  for (size_t i = 0; i < values_.size(); ++i) {
    require_ok(method.set_input(values_[i], i), "input " + std::to_string(i));
  }
}

}  // namespace linkcheck::runner
