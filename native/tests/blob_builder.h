// Makes blobs for tests, right ones and, field by field, wrong ones.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

class BlobBuilder {
 public:
  BlobBuilder& magic(std::string value) { return set(magic_, std::move(value)); }
  BlobBuilder& metadata(std::string value) { return set(metadata_, std::move(value)); }
  BlobBuilder& engine(std::string value) { return set(engine_, std::move(value)); }
  BlobBuilder& metadata_offset(uint32_t value) { return set(metadata_offset_, value); }
  BlobBuilder& metadata_size(uint32_t value) { return set(metadata_size_, value); }
  BlobBuilder& engine_offset(uint32_t value) { return set(engine_offset_, value); }
  BlobBuilder& engine_size(uint64_t value) { return set(engine_size_, value); }

  std::string build() const {
    const auto metadata_size = static_cast<uint32_t>(metadata_.size());
    const uint32_t engine_offset = (kHeaderSize + metadata_size + 15) / 16 * 16;
    std::string blob = magic_;
    put<uint32_t>(blob, metadata_offset_.value_or(kHeaderSize));
    put<uint32_t>(blob, metadata_size_.value_or(metadata_size));
    put<uint32_t>(blob, engine_offset_.value_or(engine_offset));
    put<uint64_t>(blob, engine_size_.value_or(engine_.size()));
    blob += std::string("\x01\0\0\0\0\0\0\0", 8);
    blob += metadata_;
    blob.resize(engine_offset, '\0');
    return blob + engine_;
  }

 private:
  static constexpr uint32_t kHeaderSize = 32;

  template <typename Field, typename Value>
  BlobBuilder& set(Field& field, Value value) {
    field = std::move(value);
    return *this;
  }

  template <typename T>
  static void put(std::string& blob, T value) {
    for (size_t i = 0; i < sizeof(T); ++i) blob += static_cast<char>((value >> (8 * i)) & 0xFF);
  }

  std::string magic_ = "TR01";
  std::string metadata_ = R"({"io_bindings":[]})";
  std::string engine_ = "engine";
  std::optional<uint32_t> metadata_offset_;
  std::optional<uint32_t> metadata_size_;
  std::optional<uint32_t> engine_offset_;
  std::optional<uint64_t> engine_size_;
};
