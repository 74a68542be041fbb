#include "blob.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>

namespace linkcheck::trt {
namespace {

using Json = nlohmann::json;

constexpr size_t kHeaderSize = 32;
constexpr uint32_t kEngineAlignment = 16;

Failure invalid(std::string message) {
  return {Error::InvalidProgram, "blob: " + std::move(message)};
}

template <typename T>
T little_endian(const unsigned char* bytes) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<T>(value | static_cast<T>(static_cast<T>(bytes[i]) << (8 * i)));
  }
  return value;
}

struct Header {
  uint32_t metadata_offset = 0;
  uint32_t metadata_size = 0;
  uint32_t engine_offset = 0;
  uint64_t engine_size = 0;
};

Outcome<Header> read_header(const unsigned char* bytes, size_t size) {
  if (size < kHeaderSize) return invalid("shorter than its header");
  const std::string_view magic(reinterpret_cast<const char*>(bytes), 4);
  if (magic != "TR01" && magic != "TR02") return invalid("unknown magic");
  Header header;
  header.metadata_offset = little_endian<uint32_t>(bytes + 4);
  header.metadata_size = little_endian<uint32_t>(bytes + 8);
  header.engine_offset = little_endian<uint32_t>(bytes + 12);
  header.engine_size = little_endian<uint64_t>(bytes + 16);
  if (header.metadata_offset < kHeaderSize) return invalid("metadata begins inside the header");
  if (header.engine_offset % kEngineAlignment != 0) return invalid("engine is not 16-byte aligned");
  // Every comparison subtracts from what is known to be larger: a sum could wrap.
  if (header.metadata_offset > size || header.metadata_size > size - header.metadata_offset) {
    return invalid("metadata ends past the blob");
  }
  if (header.engine_offset > size || header.engine_size > size - header.engine_offset) {
    return invalid("engine ends past the blob");
  }
  if (header.metadata_offset > header.engine_offset ||
      header.metadata_size > header.engine_offset - header.metadata_offset) {
    return invalid("metadata overlaps the engine");
  }
  return header;
}

// Parses strictly: nothing after the value, and no key twice in one object (which of the two counts
// would be a guess).
Outcome<Json> parse_json(std::string_view text) {
  std::vector<std::set<std::string>> open_objects;
  std::string repeated;
  const auto watch = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) open_objects.emplace_back();
    if (event == Json::parse_event_t::object_end) open_objects.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto key = parsed.get<std::string>();
      if (!open_objects.back().insert(key).second) repeated = key;
    }
    return true;
  };
  Json json = Json::parse(text.begin(), text.end(), watch, /*allow_exceptions=*/false);
  if (json.is_discarded()) return invalid("metadata is not JSON");
  if (!repeated.empty()) return invalid("metadata has the key " + repeated + " twice");
  if (!json.is_object()) return invalid("metadata is not a JSON object");
  return json;
}

// The non-empty text at `key`. A name with a zero byte could never equal an engine's.
std::optional<std::string> text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return std::nullopt;
  auto text = found->get<std::string>();
  if (text.empty() || text.find('\0') != std::string::npos) return std::nullopt;
  return text;
}

Status read_bindings(const Json& json, Blob& blob) {
  const auto list = json.find("io_bindings");
  if (list == json.end() || !list->is_array()) return invalid("io_bindings is no list");
  std::set<std::string> names;
  for (const Json& entry : *list) {
    if (!entry.is_object()) return invalid("an entry of io_bindings is no object");
    const auto name = text_at(entry, "name");
    if (!name) return invalid("an entry of io_bindings has no name");
    const auto is_input = entry.find("is_input");
    if (is_input == entry.end() || !is_input->is_boolean()) {
      return invalid("binding " + *name + " does not say is_input");
    }
    if (!names.insert(*name).second) return invalid("binding " + *name + " is listed twice");
    blob.bindings.push_back({*name, is_input->get<bool>()});
  }
  return {};
}

Status read_aliases(const Json& json, Blob& blob) {
  const auto list = json.find("aliased_io");
  if (list == json.end()) return {};
  if (!list->is_array()) return invalid("aliased_io is no list");
  for (const Json& entry : *list) {
    if (!entry.is_object()) return invalid("an entry of aliased_io is no object");
    const auto output = text_at(entry, "output");
    const auto input = text_at(entry, "input");
    if (!output || !input) return invalid("an entry of aliased_io lacks its output or input");
    BlobAlias alias{*output, *input, AliasKind::kKvCacheUpdate};
    if (entry.contains("kind")) {
      const auto kind = text_at(entry, "kind");
      if (kind == "user") {
        alias.kind = AliasKind::kUser;
      } else if (kind != "kv_cache_update") {
        return invalid("alias of " + *output + " is of an unknown kind");
      }
    }
    blob.aliases.push_back(std::move(alias));
  }
  return {};
}

Status read_scalars(const Json& json, Blob& blob) {
  if (const auto flag = json.find("hardware_compatible"); flag != json.end()) {
    if (!flag->is_boolean()) return invalid("hardware_compatible is neither true nor false");
    blob.hardware_compatible = flag->get<bool>();
  }
  if (const auto device = json.find("device_id"); device != json.end()) {
    constexpr uint64_t kMaximum = std::numeric_limits<int>::max();
    if (!device->is_number_unsigned() || device->get<uint64_t>() > kMaximum) {
      return invalid("device_id is no device ordinal");
    }
    blob.device_id = static_cast<int>(device->get<uint64_t>());
  }
  if (const auto platform = json.find("target_platform"); platform != json.end()) {
    if (!platform->is_string()) return invalid("target_platform is no text");
    blob.target_platform = platform->get<std::string>();
  }
  if (json.contains("engine_key")) {
    const auto key = text_at(json, "engine_key");
    if (!key) return invalid("engine_key is no text");
    blob.engine_key = *key;
  }
  return {};
}

}  // namespace

Outcome<Blob> read_blob(const void* data, size_t size) {
  if (data == nullptr) return invalid("no data");
  const auto* bytes = static_cast<const unsigned char*>(data);
  auto header = read_header(bytes, size);
  if (!header.ok()) return std::move(header.failure());
  const Header& at = header.value();
  auto json =
      parse_json({reinterpret_cast<const char*>(bytes) + at.metadata_offset, at.metadata_size});
  if (!json.ok()) return std::move(json.failure());
  Blob blob;
  for (const auto read : {read_bindings, read_aliases, read_scalars}) {
    Status status = read(json.value(), blob);
    if (!status.ok()) return std::move(status.failure());
  }
  blob.engine_size = static_cast<size_t>(at.engine_size);
  if (blob.engine_size > 0) blob.engine = bytes + at.engine_offset;
  if ((blob.engine_size > 0) == !blob.engine_key.empty()) {
    return invalid(blob.engine_key.empty() ? "holds no engine and names none"
                                           : "holds an engine and names another");
  }
  return blob;
}

}  // namespace linkcheck::trt
