#include "loaded_plan.h"

#include <fstream>
#include <iterator>
#include <stdexcept>

#include "blob_builder.h"

namespace gpu_suite {

namespace et = executorch::runtime;

std::string read_plan(const std::string& folder, const std::string& name) {
  std::ifstream file(folder + "/" + name + ".plan", std::ios::binary);
  if (!file) throw std::runtime_error("no plan " + name + " in " + folder);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

LoadedPlan::LoadedPlan(const std::string& plan, const std::vector<std::string>& inputs,
                       const std::vector<std::string>& outputs, const Options& options)
    : backend_(et::get_backend_class("TensorRTBackend")) {
  if (backend_ == nullptr) throw std::runtime_error("TensorRTBackend is not registered");
  std::string bindings;
  const auto add = [&bindings](const std::string& name, const char* is_input) {
    bindings += std::string(bindings.empty() ? "" : ",") + R"({"name":")" + name +
                R"(","is_input":)" + is_input + "}";
  };
  for (const std::string& name : inputs) add(name, "true");
  for (const std::string& name : outputs) add(name, "false");
  const std::string blob =
      BlobBuilder().metadata(R"({"io_bindings":[)" + bindings + "]}").engine(plan).build();
  et::FreeableBuffer processed(blob.data(), blob.size(), nullptr);
  et::BackendOptions<2> backend_options;
  backend_options.set_option("async_return", options.async_return);
  backend_options.set_option("max_contexts", options.max_contexts);
  const auto view = backend_options.view();
  et::BackendInitContext context(&allocator_, nullptr, "forward", nullptr,
                                 {view.data(), view.size()});
  auto handle = backend_->init(context, &processed, {});
  if (!handle.ok()) throw std::runtime_error("the delegate refuses the plan");
  handle_ = handle.get();
}

LoadedPlan::~LoadedPlan() { backend_->destroy(handle_); }

et::Error LoadedPlan::execute(std::vector<FloatTensor*> tensors) const {
  std::vector<et::EValue*> values;
  for (FloatTensor* tensor : tensors) values.push_back(tensor->value());
  return execute_values(values.data(), values.size());
}

et::Error LoadedPlan::execute_values(et::EValue** values, size_t count) const {
  et::BackendExecutionContext context;
  return backend_->execute(context, handle_, {values, count});
}

}  // namespace gpu_suite
