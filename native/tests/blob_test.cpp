// The blob reader: what upstream's writer makes is read, what the format does not allow is refused
// with its reason.
#include "blob.h"

#include <gmock/gmock.h>

#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "blob_builder.h"

using linkcheck::trt::AliasKind;
using linkcheck::trt::Blob;
using linkcheck::trt::Error;
using linkcheck::trt::read_blob;
using testing::HasSubstr;

namespace {

// What upstream's writer emits, all keys, in its order.
constexpr char kFullMetadata[] =
    R"({"io_bindings":[{"name":"x","dtype":"","shape":[],"is_input":true},)"
    R"({"name":"y","dtype":"","shape":[],"is_input":false}],"aliased_io":[],)"
    R"("hardware_compatible":true,"device_id":2,"serialized_metadata":"gASV","target_platform":"linux_x86_64"})";

Blob read(const BlobBuilder& builder) {
  const std::string bytes = builder.build();
  auto blob = read_blob(bytes.data(), bytes.size());
  EXPECT_TRUE(blob.ok()) << (blob.ok() ? "" : blob.failure().message);
  return blob.ok() ? blob.value() : Blob{};
}

std::string refusal(const std::string& bytes) {
  auto blob = read_blob(bytes.data(), bytes.size());
  EXPECT_FALSE(blob.ok());
  if (blob.ok()) return "";
  EXPECT_EQ(blob.failure().code, Error::InvalidProgram);
  return blob.failure().message;
}

std::string refusal(const BlobBuilder& builder) { return refusal(builder.build()); }

std::string from_hex(const std::string& digits) {
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

// What was read, in the words and the order of the vectors that the Python reader is held to, too.
std::vector<std::string> describe(const Blob& blob) {
  std::vector<std::string> lines;
  for (const auto& binding : blob.bindings) {
    lines.push_back((binding.is_input ? "binding = input " : "binding = output ") + binding.name);
  }
  for (const auto& alias : blob.aliases) {
    const char* kind = alias.kind == AliasKind::kUser ? " user" : " kv_cache_update";
    lines.push_back("alias = " + alias.output + " " + alias.input + kind);
  }
  if (blob.hardware_compatible) lines.push_back("hardware_compatible = true");
  if (blob.device_id != 0) lines.push_back("device_id = " + std::to_string(blob.device_id));
  if (blob.engine != nullptr) {
    std::string digits;
    for (size_t i = 0; i < blob.engine_size; ++i) {
      const auto byte = static_cast<const unsigned char*>(blob.engine)[i];
      digits += {"0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]};
    }
    lines.push_back("engine = " + digits);
  }
  if (!blob.engine_key.empty()) lines.push_back("engine_key = " + blob.engine_key);
  return lines;
}

std::string bindings(const std::string& entries) { return R"({"io_bindings":[)" + entries + "]}"; }

}  // namespace

TEST(Blob, ReadsWhatUpstreamWrites) {
  const std::string bytes = BlobBuilder().metadata(kFullMetadata).engine("ENGINE").build();
  auto outcome = read_blob(bytes.data(), bytes.size());
  ASSERT_TRUE(outcome.ok());
  const Blob& blob = outcome.value();
  ASSERT_EQ(blob.bindings.size(), 2U);
  EXPECT_EQ(blob.bindings[0].name, "x");
  EXPECT_TRUE(blob.bindings[0].is_input);
  EXPECT_FALSE(blob.bindings[1].is_input);
  EXPECT_TRUE(blob.hardware_compatible);
  EXPECT_EQ(blob.device_id, 2);
  EXPECT_EQ(blob.target_platform, "linux_x86_64");
  EXPECT_EQ(blob.engine_size, 6U);
  EXPECT_EQ(std::string(static_cast<const char*>(blob.engine), 6), "ENGINE");
  EXPECT_EQ((static_cast<const char*>(blob.engine) - bytes.data()) % 16, 0);
}

TEST(Blob, OnlyBindingsAreMandatory) {
  const Blob blob = read(BlobBuilder().metadata(R"({"io_bindings":[]})"));
  EXPECT_EQ(blob.device_id, 0);
  EXPECT_FALSE(blob.hardware_compatible);
  EXPECT_TRUE(blob.bindings.empty());
}

TEST(Blob, KeysMayComeInAnyOrderAndWithSpaces) {
  const Blob blob = read(BlobBuilder().metadata(
      "\n{ \"device_id\" : 1 , \"later\": {\"io_bindings\": 3}, \"io_bindings\" : [ ] }\t"));
  EXPECT_EQ(blob.device_id, 1);
}

TEST(Blob, ReadsAliasesOfBothKindsUnderBothMagics) {
  const std::string metadata =
      R"({"io_bindings":[],"aliased_io":[{"output":"o","input":"i","kind":"user"},{"output":"p","input":"j"}]})";
  for (const char* magic : {"TR01", "TR02"}) {
    const Blob blob = read(BlobBuilder().magic(magic).metadata(metadata));
    ASSERT_EQ(blob.aliases.size(), 2U);
    EXPECT_EQ(blob.aliases[0].kind, AliasKind::kUser);
    EXPECT_EQ(blob.aliases[1].kind, AliasKind::kKvCacheUpdate);
  }
  EXPECT_TRUE(read(BlobBuilder().magic("TR02")).aliases.empty());
}

TEST(Blob, TrailingAndReservedBytesAreIgnored) {
  std::string bytes = BlobBuilder().build() + "more";
  bytes[25] = 'x';
  EXPECT_TRUE(read_blob(bytes.data(), bytes.size()).ok());
}

TEST(Blob, RefusesABrokenHeader) {
  EXPECT_FALSE(read_blob(nullptr, 100).ok());
  EXPECT_THAT(refusal(BlobBuilder().build().substr(0, 31)), HasSubstr("shorter"));
  EXPECT_THAT(refusal(BlobBuilder().magic("TR03")), HasSubstr("magic"));
  EXPECT_THAT(refusal(BlobBuilder().metadata_offset(31)), HasSubstr("inside the header"));
  EXPECT_THAT(refusal(BlobBuilder().engine_offset(72)), HasSubstr("aligned"));
  EXPECT_THAT(refusal(BlobBuilder().metadata_size(1U << 30)), HasSubstr("metadata ends"));
  EXPECT_THAT(refusal(BlobBuilder().metadata_offset(0xFFFFFFFF)), HasSubstr("metadata ends"));
  EXPECT_THAT(refusal(BlobBuilder().engine_size(1000)), HasSubstr("engine ends"));
  EXPECT_THAT(refusal(BlobBuilder().engine_offset(32)), HasSubstr("overlaps"));
  EXPECT_THAT(refusal(BlobBuilder().engine_offset(0)), HasSubstr("overlaps"));
}

TEST(Blob, EverySizeThatWouldWrapIsRefused) {
  for (const uint64_t size : {UINT64_MAX, UINT64_MAX - 127, UINT64_MAX - 15, uint64_t{1} << 63}) {
    EXPECT_THAT(refusal(BlobBuilder().engine_size(size)), HasSubstr("engine ends")) << size;
  }
}

TEST(Blob, EveryTruncationIsRefused) {
  const std::string bytes = BlobBuilder().metadata(kFullMetadata).engine("ENGINE").build();
  for (size_t size = 0; size < bytes.size(); ++size) {
    // Exactly sized storage, so that the address sanitizer sees one byte too many.
    const std::vector<char> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(read_blob(cut.data(), cut.size()).ok()) << size;
  }
}

TEST(Blob, RefusesWhatIsNotJson) {
  for (const char* metadata :
       {"", "{", "[]", "3", R"({"io_bindings":[]} x)", R"({"io_bindings":[],})",
        R"({'io_bindings':[]})", R"({"io_bindings":[]}{})", R"(x{"io_bindings":[]})",
        "{\"io_bindings\":[],\"a\":\"\xff\"}"}) {
    EXPECT_THAT(refusal(BlobBuilder().metadata(metadata)), HasSubstr("JSON")) << metadata;
  }
}

TEST(Blob, RefusesAKeyGivenTwice) {
  EXPECT_THAT(refusal(BlobBuilder().metadata(R"({"io_bindings":[],"device_id":0,"device_id":1})")),
              HasSubstr("device_id twice"));
  EXPECT_THAT(
      refusal(BlobBuilder().metadata(bindings(R"({"name":"a","name":"b","is_input":true})"))),
      HasSubstr("name twice"));
}

TEST(Blob, NamesThatLookLikeKeysAreNames) {
  const Blob blob = read(BlobBuilder().metadata(
      R"({"io_bindings":[{"name":"aliased_io","is_input":true},{"name":"\"device_id\":7","is_input":false}],)"
      R"("aliased_io":[{"output":"device_id","input":"hardware_compatible"}],"device_id":1})"));
  EXPECT_EQ(blob.bindings[0].name, "aliased_io");
  EXPECT_EQ(blob.bindings[1].name, "\"device_id\":7");
  EXPECT_EQ(blob.aliases[0].output, "device_id");
  EXPECT_EQ(blob.device_id, 1);
}

TEST(Blob, EscapesAreDecoded) {
  const Blob blob = read(
      BlobBuilder().metadata(bindings(R"({"name":"caf\u00e9_\ud83d\ude00","is_input":true})")));
  EXPECT_EQ(blob.bindings[0].name, "caf\u00e9_\U0001F600");
}

TEST(Blob, DeviceIdMustBeAnOrdinal) {
  for (const char* device :
       {"99999999999", "4294967296", "2147483648", "-1", "1.0", "true", "\"0\"", "null"}) {
    EXPECT_THAT(refusal(BlobBuilder().metadata(R"({"io_bindings":[],"device_id":)" +
                                               std::string(device) + "}")),
                HasSubstr("device_id"))
        << device;
  }
}

TEST(Blob, BindingsMustBeWhole) {
  EXPECT_THAT(refusal(BlobBuilder().metadata("{}")), HasSubstr("io_bindings"));
  EXPECT_THAT(refusal(BlobBuilder().metadata(R"({"io_bindings":{}})")), HasSubstr("io_bindings"));
  for (const char* entry :
       {"3", R"({"is_input":true})", R"({"name":"","is_input":true})",
        R"({"name":3,"is_input":true})", R"({"name":"a\u0000b","is_input":true})"}) {
    refusal(BlobBuilder().metadata(bindings(entry)));
  }
  EXPECT_THAT(refusal(BlobBuilder().metadata(bindings(R"({"name":"a"})"))), HasSubstr("is_input"));
  EXPECT_THAT(refusal(BlobBuilder().metadata(
                  bindings(R"({"name":"a","is_input":true},{"name":"a","is_input":false})"))),
              HasSubstr("twice"));
}

TEST(Blob, AliasesMustBeWhole) {
  for (const char* alias :
       {"3", R"({"output":"o"})", R"({"input":"i"})",
        R"({"output":"o","input":"i","kind":"other"})", R"({"output":"o","input":"i","kind":1})"}) {
    EXPECT_THAT(refusal(BlobBuilder().metadata(R"({"io_bindings":[],"aliased_io":[)" +
                                               std::string(alias) + "]}")),
                HasSubstr("alias"))
        << alias;
  }
}

TEST(Blob, AnEngineIsInlineOrNamedNeverBothOrNeither) {
  EXPECT_THAT(refusal(BlobBuilder().engine("")), HasSubstr("holds no engine"));
  const std::string named = R"({"io_bindings":[],"engine_key":"tensorrt_engine_00"})";
  EXPECT_THAT(refusal(BlobBuilder().metadata(named)), HasSubstr("names another"));
  const Blob blob = read(BlobBuilder().metadata(named).engine(""));
  EXPECT_EQ(blob.engine_key, "tensorrt_engine_00");
  EXPECT_EQ(blob.engine, nullptr);
}

TEST(Blob, DamagedBytesAreReadOrRefusedButNeverLeaveTheBlob) {
  const std::string whole = BlobBuilder().metadata(kFullMetadata).engine("ENGINE").build();
  std::mt19937 random(1);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    // Exactly sized storage, so that the address sanitizer sees one byte too many.
    std::vector<char> bytes(whole.begin(), whole.end());
    for (int i = 0; i < 3; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    auto blob = read_blob(bytes.data(), bytes.size());
    if (!blob.ok() || blob.value().engine == nullptr) continue;
    ++accepted;
    const auto* engine = static_cast<const char*>(blob.value().engine);
    ASSERT_GE(engine, bytes.data());
    ASSERT_LE(blob.value().engine_size, static_cast<size_t>(bytes.data() + bytes.size() - engine));
  }
  EXPECT_GT(accepted, 0) << "a flip inside the engine or a name changes nothing here";
}

TEST(Blob, DeeplyNestedMetadataIsAnAnswerNotACrash) {
  const std::string deep = R"({"io_bindings":[],"a":)" + std::string(200000, '[');
  EXPECT_THAT(refusal(BlobBuilder().metadata(deep)), HasSubstr("JSON"));
}

TEST(Blob, AgreesWithThePythonReaderOnTheSharedVectors) {
  std::ifstream file(LINKCHECK_BLOB_VECTORS);
  ASSERT_TRUE(file) << LINKCHECK_BLOB_VECTORS;
  std::string heading;
  std::string bytes;
  std::string refused;
  std::vector<std::string> expected;
  int checked = 0;
  const auto check = [&] {
    if (heading.empty()) return;
    SCOPED_TRACE(heading);
    ++checked;
    // Exactly sized storage, so that the address sanitizer sees one byte too many.
    const std::vector<char> data(bytes.begin(), bytes.end());
    auto blob = read_blob(data.data(), data.size());
    if (!refused.empty()) {
      ASSERT_FALSE(blob.ok());
      EXPECT_THAT(blob.failure().message, HasSubstr(refused));
      return;
    }
    ASSERT_TRUE(blob.ok()) << blob.failure().message;
    EXPECT_EQ(describe(blob.value()), expected);
  };
  for (std::string line; std::getline(file, line);) {
    const size_t at = line.find(" = ");
    const std::string key = line.substr(0, at);
    const std::string value = at == std::string::npos ? "" : line.substr(at + 3);
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == '[') {
      check();
      heading = line;
      bytes.clear();
      refused.clear();
      expected.clear();
    } else if (key == "bytes") {
      bytes = from_hex(value);
    } else if (key == "refused") {
      refused = value;
    } else {
      expected.push_back(line);
    }
  }
  check();
  EXPECT_GT(checked, 50);
}
