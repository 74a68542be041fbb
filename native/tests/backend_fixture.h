// What the backend's tests share: loading a plan through the registered backend, and tensors in
// host or device memory.
#pragma once

#include <executorch/extension/memory_allocator/malloc_memory_allocator.h>
#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/core/evalue.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "blob_builder.h"
#include "gpusim_matchers.h"
#include "test_plans.h"

namespace et = executorch::runtime;
using executorch::aten::ScalarType;
using executorch::runtime::Error;

// Where a test tensor's bytes are.
enum class Place { kHost, kDevice, kPinned, kManaged };

// One tensor and its memory. Device memory is written and read with plain copies that wait for
// nothing but themselves.
class TestTensor {
 public:
  TestTensor(ScalarType dtype, std::vector<int32_t> sizes, Place place = Place::kHost,
             std::vector<uint8_t> dim_order = {});
  ~TestTensor();
  TestTensor(TestTensor&&) = delete;

  template <typename T>
  static std::unique_ptr<TestTensor> of(ScalarType dtype, std::vector<int32_t> sizes,
                                        const std::vector<T>& values, Place place = Place::kHost) {
    auto tensor = std::make_unique<TestTensor>(dtype, std::move(sizes), place);
    tensor->write(values.data(), values.size() * sizeof(T));
    return tensor;
  }
  static std::unique_ptr<TestTensor> floats(std::vector<int32_t> sizes, float value,
                                            Place place = Place::kHost);

  void write(const void* bytes, size_t size);
  template <typename T>
  std::vector<T> read() const {
    std::vector<T> values(static_cast<size_t>(impl_->numel()));
    read_bytes(values.data(), values.size() * sizeof(T));
    return values;
  }

  et::EValue* value() { return &*value_; }
  executorch::aten::Tensor tensor() { return executorch::aten::Tensor(impl_.get()); }
  executorch::runtime::etensor::TensorImpl& impl() { return *impl_; }
  void* data() const { return data_; }
  std::vector<int32_t> sizes() const { return {impl_->sizes().begin(), impl_->sizes().end()}; }

 private:
  void read_bytes(void* into, size_t size) const;

  Place place_;
  std::vector<int32_t> sizes_;
  std::vector<uint8_t> dim_order_;
  std::vector<int32_t> strides_;
  std::vector<unsigned char> host_;
  void* data_ = nullptr;
  size_t capacity_ = 0;
  std::unique_ptr<executorch::runtime::etensor::TensorImpl> impl_;
  std::optional<et::EValue> value_;
};

// For handles that are made on several threads, which ExecuTorch's own allocator is not made for.
class LockedAllocator final : public executorch::extension::MallocMemoryAllocator {
 public:
  void* allocate(size_t size, size_t alignment = kDefaultAlignment) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return MallocMemoryAllocator::allocate(size, alignment);
  }

 private:
  std::mutex mutex_;
};

class BackendTest : public GpusimTest {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Metadata listing the bindings, "x" for inputs and "y" for outputs as given.
  static std::string metadata(const std::vector<std::string>& inputs,
                              const std::vector<std::string>& outputs,
                              const std::string& more = "");
  static std::string blob(const std::string& plan, const std::string& metadata_json);
  static std::string add_one_blob(const std::string& more = "");

  // Loads through the registry; the handle is destroyed by destroy() or TearDown().
  Error load(const std::string& blob_bytes);
  Error load_add_one() { return load(add_one_blob()); }
  void destroy();

  // The same for one more handle of the test's own; null when it is refused.
  et::DelegateHandle* load_one_more(const std::string& blob_bytes, bool* was_freed = nullptr);
  Error execute_on(et::DelegateHandle* handle, const std::vector<TestTensor*>& arguments);
  et::DelegateHandle* handle() const { return handle_; }

  Error execute(const std::vector<TestTensor*>& arguments);
  Error execute_values(std::vector<et::EValue*> values);

  // What the delegate logged as an error since the test began.
  static std::string errors();
  static std::string infos();  // the same for its lines at level Info
  static void clear_log();

  const et::BackendInterface& backend() const { return *backend_; }
  bool processed_was_freed() const { return freed_; }

  et::BackendOptions<4> options_;
  std::vector<et::CompileSpec> compile_specs_;
  const et::NamedDataMap* named_data_ = nullptr;
  et::MemoryAllocator* allocator_ = nullptr;  // null: none

 private:
  const et::BackendInterface* backend_ = nullptr;
  LockedAllocator malloc_allocator_;
  et::DelegateHandle* handle_ = nullptr;
  et::Result<et::DelegateHandle*> init(const std::string& blob_bytes, bool* was_freed);

  bool freed_ = false;
};

// A fresh simulator with these settings.
void restart(const gpusim::Settings& settings);
