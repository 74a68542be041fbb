// A program's named data with several engines, handed out as ExecuTorch's loaders do: copied from a
// file, or in place from mapped memory. It counts what is on the host.
#pragma once

#include <executorch/runtime/core/named_data_map.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

class NamedEngines final : public executorch::runtime::NamedDataMap {
 public:
  enum class Loader { kFile, kMapped };

  explicit NamedEngines(Loader loader) : loader_(loader) {}
  ~NamedEngines() override {
    for (auto& [key, entry] : engines_) std::free(entry.bytes);
  }

  void add(const std::string& key, const std::string& engine) {
    Entry& entry = engines_[key];
    entry.size = engine.size();
    entry.bytes = copy(engine.data(), engine.size());
  }
  // The most bytes of copies that were there at one time.
  size_t peak() const { return peak_; }
  size_t live() const { return live_; }

  executorch::runtime::Result<const executorch::runtime::TensorLayout> get_tensor_layout(
      std::string_view) const override {
    return executorch::runtime::Error::NotFound;
  }
  executorch::runtime::Result<executorch::runtime::FreeableBuffer> get_data(
      std::string_view key) const override {
    const auto found = engines_.find(std::string(key));
    if (found == engines_.end()) return executorch::runtime::Error::NotFound;
    const Entry& entry = found->second;
    if (loader_ == Loader::kMapped) {
      return executorch::runtime::FreeableBuffer(entry.bytes, entry.size, nullptr);
    }
    live_ += entry.size;
    peak_ = std::max(peak_, live_);
    return executorch::runtime::FreeableBuffer(
        copy(entry.bytes, entry.size), entry.size,
        [](void* owner, void* data, size_t size) {
          std::free(data);
          static_cast<const NamedEngines*>(owner)->live_ -= size;
        },
        const_cast<NamedEngines*>(this));
  }
  executorch::runtime::Error load_data_into(std::string_view, void*, size_t) const override {
    return executorch::runtime::Error::NotFound;
  }
  executorch::runtime::Result<uint32_t> get_num_keys() const override {
    return static_cast<uint32_t>(engines_.size());
  }
  executorch::runtime::Result<const char*> get_key(uint32_t) const override {
    return executorch::runtime::Error::NotFound;
  }

 private:
  struct Entry {
    void* bytes = nullptr;
    size_t size = 0;
  };
  static void* copy(const void* bytes, size_t size) {
    void* memory = std::aligned_alloc(128, (size + 127) / 128 * 128);
    std::memcpy(memory, bytes, size);
    return memory;
  }

  const Loader loader_;
  std::map<std::string, Entry> engines_;
  mutable size_t live_ = 0;
  mutable size_t peak_ = 0;
};
