// Reads the bytes that the ahead-of-time side stored for one delegate call: header, metadata,
// engine. Pure: no CUDA, no TensorRT, and the engine's bytes are only located, never looked into.
//
// 32 bytes, little-endian: magic TR01 or TR02, u32 metadata offset, u32 metadata size, u32 engine
// offset (a multiple of 16), u64 engine size, 8 reserved bytes. The metadata is JSON. An engine
// size of zero with "engine_key" in the metadata means that the engine lies in the program's named
// data under that key.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "failure.h"

namespace linkcheck::trt {

struct BlobBinding {
  std::string name;
  bool is_input = false;
};

enum class AliasKind {
  kKvCacheUpdate,  // the engine itself says that the output is the input, updated
  kUser            // the exporter says so, and the engine knows nothing of it
};

struct BlobAlias {
  std::string output;
  std::string input;
  AliasKind kind = AliasKind::kKvCacheUpdate;
};

struct Blob {
  std::vector<BlobBinding> bindings;  // in argument order, or empty: then names say the order
  std::vector<BlobAlias> aliases;
  bool hardware_compatible = false;
  int device_id = 0;
  std::string target_platform;   // such as linux_x86_64; empty: the exporter does not say
  std::string engine_key;        // empty: the engine is inline
  const void* engine = nullptr;  // points into the blob
  size_t engine_size = 0;
};

// Fails with InvalidProgram, naming the field, on anything that the format does not allow.
Outcome<Blob> read_blob(const void* data, size_t size);

}  // namespace linkcheck::trt
