#include "content_hash.h"

#include <algorithm>
#include <cstring>

namespace linkcheck::trt {
namespace {

// Odd numbers with no pattern: the fractional digits of square roots of primes.
constexpr std::array<uint64_t, 8> kKeys = {
    0x6a09e667f3bcc909, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};

__extension__ using Wide = unsigned __int128;

// Every bit of the product of both, folded: what a 64-bit product alone would lose stays in.
uint64_t mix(uint64_t a, uint64_t b) {
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t word_at(const unsigned char* bytes) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

}  // namespace

ContentHash hash_content(const void* data, size_t size) {
  constexpr size_t kBlock = 32;
  // Two lanes of two words for each half: four products that do not wait for one another.
  std::array<uint64_t, 4> lanes = {kKeys[4], kKeys[5], kKeys[6], kKeys[7]};
  const auto* bytes = static_cast<const unsigned char*>(data);
  const auto absorb = [&lanes](const unsigned char* block) {
    const uint64_t a = word_at(block);
    const uint64_t b = word_at(block + 8);
    const uint64_t c = word_at(block + 16);
    const uint64_t d = word_at(block + 24);
    // The plain words are added, so that a factor of zero hides nothing.
    lanes[0] = mix(lanes[0] ^ a ^ kKeys[0], b ^ kKeys[1]) + a;
    lanes[1] = mix(lanes[1] ^ c ^ kKeys[2], d ^ kKeys[3]) + c;
    lanes[2] = mix(lanes[2] ^ b ^ kKeys[2], a ^ kKeys[0]) + d;
    lanes[3] = mix(lanes[3] ^ d ^ kKeys[1], c ^ kKeys[3]) + b;
  };
  size_t at = 0;
  for (; size - at >= kBlock; at += kBlock) absorb(bytes + at);
  if (at < size) {
    std::array<unsigned char, kBlock> rest{};
    std::memcpy(rest.data(), bytes + at, size - at);
    absorb(rest.data());
  }
  ContentHash hash{};
  hash[0] = mix(lanes[0] ^ size, lanes[1] ^ kKeys[4]) ^ mix(lanes[2], kKeys[5]);
  hash[1] = mix(lanes[2] ^ size, lanes[3] ^ kKeys[6]) ^ mix(lanes[0], kKeys[7]);
  return hash;
}

}  // namespace linkcheck::trt
