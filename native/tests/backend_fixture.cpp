#include "backend_fixture.h"

#include <executorch/runtime/platform/platform.h>
#include <executorch/runtime/platform/runtime.h>

#include <cstring>
#include <mutex>
#include <numeric>

namespace {

std::mutex log_mutex;
std::string logged_errors;
std::string logged_infos;

void keep_lines(et_timestamp_t, et_pal_log_level_t level, const char*, const char*, size_t,
                const char* message, size_t length) {
  if (level != et_pal_log_level_t::kError && level != et_pal_log_level_t::kInfo) return;
  const std::lock_guard<std::mutex> lock(log_mutex);
  std::string& lines = level == et_pal_log_level_t::kError ? logged_errors : logged_infos;
  lines.append(message, length).append("\n");
}

}  // namespace

TestTensor::TestTensor(ScalarType dtype, std::vector<int32_t> sizes, Place place,
                       std::vector<uint8_t> dim_order)
    : place_(place),
      sizes_(std::move(sizes)),
      dim_order_(std::move(dim_order)),
      strides_(sizes_.size()) {
  if (dim_order_.empty()) {
    dim_order_.resize(sizes_.size());
    std::iota(dim_order_.begin(), dim_order_.end(), uint8_t{0});
  }
  int32_t stride = 1;
  for (size_t i = sizes_.size(); i-- > 0;) {
    strides_[dim_order_[i]] = stride;
    stride *= std::max(sizes_[dim_order_[i]], 1);
  }
  impl_ = std::make_unique<executorch::runtime::etensor::TensorImpl>(
      dtype, static_cast<ssize_t>(sizes_.size()), sizes_.data(), nullptr, dim_order_.data(),
      strides_.data(), executorch::runtime::TensorShapeDynamism::DYNAMIC_BOUND);
  capacity_ = impl_->nbytes();
  switch (place) {
    case Place::kHost:
      host_.assign(std::max<size_t>(capacity_, 1), 0xEE);
      data_ = host_.data();
      break;
    case Place::kDevice:
      EXPECT_EQ(cudaMalloc(&data_, std::max<size_t>(capacity_, 1)), cudaSuccess);
      break;
    case Place::kPinned:
      EXPECT_EQ(cudaMallocHost(&data_, std::max<size_t>(capacity_, 1)), cudaSuccess);
      break;
    case Place::kManaged:
      EXPECT_EQ(cudaMallocManaged(&data_, std::max<size_t>(capacity_, 1), cudaMemAttachGlobal),
                cudaSuccess);
      break;
  }
  impl_->set_data(data_);
  value_.emplace(executorch::aten::Tensor(impl_.get()));
}

TestTensor::~TestTensor() {
  if (place_ == Place::kDevice || place_ == Place::kManaged) cudaFree(data_);
  if (place_ == Place::kPinned) cudaFreeHost(data_);
}

std::unique_ptr<TestTensor> TestTensor::floats(std::vector<int32_t> sizes, float value,
                                               Place place) {
  const auto count = std::accumulate(
      sizes.begin(), sizes.end(), size_t{1},
      [](size_t product, int32_t size) { return product * static_cast<size_t>(size); });
  return of<float>(ScalarType::Float, std::move(sizes), std::vector<float>(count, value), place);
}

void TestTensor::write(const void* bytes, size_t size) {
  ASSERT_LE(size, capacity_);
  if (size == 0) return;
  if (place_ == Place::kDevice) {
    ASSERT_EQ(cudaMemcpy(data_, bytes, size, cudaMemcpyHostToDevice), cudaSuccess);
  } else {
    std::memcpy(data_, bytes, size);
  }
}

void TestTensor::read_bytes(void* into, size_t size) const {
  if (size == 0) return;
  if (place_ == Place::kDevice) {
    const auto bytes = gpusim::peek(data_, size);
    std::memcpy(into, bytes.data(), size);
  } else {
    std::memcpy(into, data_, size);
  }
}

void restart(const gpusim::Settings& settings) { gpusim::reset(settings); }

void BackendTest::SetUp() {
  GpusimTest::SetUp();
  et::runtime_init();
  et::register_pal(et::PalImpl::create(keep_lines, __FILE__));
  clear_log();
  backend_ = et::get_backend_class("TensorRTBackend");
  ASSERT_NE(backend_, nullptr) << "linking linkcheck::trt_backend must register it";
  allocator_ = &malloc_allocator_;
}

void BackendTest::TearDown() {
  destroy();
  for (const gpusim::Fault& fault : gpusim::faults()) {
    ADD_FAILURE() << gpusim::to_string(fault.kind) << ": " << fault.text;
  }
  const gpusim::Live live = gpusim::live();
  EXPECT_EQ(live.contexts + live.engines + live.runtimes, 0U);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess) << "an error was left for somebody else to find";
}

std::string BackendTest::metadata(const std::vector<std::string>& inputs,
                                  const std::vector<std::string>& outputs,
                                  const std::string& more) {
  std::string list;
  const auto add = [&list](const std::string& name, const char* is_input) {
    list += (list.empty() ? "" : ",") + (R"({"name":")" + name) +
            R"(","dtype":"","shape":[],"is_input":)" + is_input + "}";
  };
  for (const std::string& name : inputs) add(name, "true");
  for (const std::string& name : outputs) add(name, "false");
  return R"({"io_bindings":[)" + list + "]" + more + "}";
}

std::string BackendTest::blob(const std::string& plan, const std::string& metadata_json) {
  return BlobBuilder().metadata(metadata_json).engine(read_plan_file(plan)).build();
}

std::string BackendTest::add_one_blob(const std::string& more) {
  return blob("add_one", metadata({"input_0"}, {"output_0"}, more));
}

Error BackendTest::load(const std::string& blob_bytes) {
  destroy();
  auto handle = init(blob_bytes, &freed_);
  if (!handle.ok()) return handle.error();
  handle_ = handle.get();
  return Error::Ok;
}

et::DelegateHandle* BackendTest::load_one_more(const std::string& blob_bytes, bool* was_freed) {
  bool ignored = false;
  auto handle = init(blob_bytes, was_freed == nullptr ? &ignored : was_freed);
  return handle.ok() ? handle.get() : nullptr;
}

et::Result<et::DelegateHandle*> BackendTest::init(const std::string& blob_bytes, bool* was_freed) {
  *was_freed = false;
  // The blob's own bytes, as a loader would give them.
  auto* bytes = new std::string(blob_bytes);
  struct Owner {
    std::string* bytes;
    bool* was_freed;
  };
  auto* owner = new Owner{bytes, was_freed};
  et::FreeableBuffer processed(
      bytes->data(), bytes->size(),
      [](void* context, void*, size_t) {
        auto* freed = static_cast<Owner*>(context);
        *freed->was_freed = true;
        delete freed->bytes;
        delete freed;
      },
      owner);
  const auto view = options_.view();
  size_t used = 0;
  while (used < view.size() && view[used].key[0] != '\0') ++used;
  et::BackendInitContext context(allocator_, nullptr, "forward", named_data_, {view.data(), used});
  auto handle = backend_->init(context, &processed, {compile_specs_.data(), compile_specs_.size()});
  const bool freed = *was_freed;
  processed.Free();
  *was_freed = freed;  // what the delegate did, not what is done here
  return handle;
}

void BackendTest::destroy() {
  if (handle_ != nullptr) backend_->destroy(handle_);
  handle_ = nullptr;
}

Error BackendTest::execute(const std::vector<TestTensor*>& arguments) {
  std::vector<et::EValue*> values;
  for (TestTensor* tensor : arguments) values.push_back(tensor->value());
  return execute_values(std::move(values));
}

Error BackendTest::execute_on(et::DelegateHandle* handle,
                              const std::vector<TestTensor*>& arguments) {
  std::vector<et::EValue*> values;
  for (TestTensor* tensor : arguments) values.push_back(tensor->value());
  et::BackendExecutionContext context;
  return backend_->execute(context, handle, {values.data(), values.size()});
}

Error BackendTest::execute_values(std::vector<et::EValue*> values) {
  et::BackendExecutionContext context;
  return backend_->execute(context, handle_, {values.data(), values.size()});
}

std::string BackendTest::errors() {
  const std::lock_guard<std::mutex> lock(log_mutex);
  return logged_errors;
}

std::string BackendTest::infos() {
  const std::lock_guard<std::mutex> lock(log_mutex);
  return logged_infos;
}

void BackendTest::clear_log() {
  const std::lock_guard<std::mutex> lock(log_mutex);
  logged_errors.clear();
  logged_infos.clear();
}
