// The hash that decides whether two engines are the same one.
#include "content_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>

using linkcheck::trt::ContentHash;
using linkcheck::trt::hash_content;

namespace {

ContentHash hash(const std::string& text) { return hash_content(text.data(), text.size()); }

}  // namespace

TEST(ContentHash, IsTheSameForTheSameBytesWhereverTheyAre) {
  const std::string text(1000, 'x');
  const std::string shifted = " " + text;
  EXPECT_EQ(hash(text), hash_content(shifted.data() + 1, text.size()));
}

TEST(ContentHash, EveryBitCounts) {
  std::mt19937 random(1);
  for (const size_t size : {1U, 8U, 31U, 32U, 33U, 100U, 257U}) {
    std::string text(size, '\0');
    for (char& byte : text) byte = static_cast<char>(random());
    std::set<ContentHash> seen = {hash(text)};
    for (size_t bit = 0; bit < size * 8; ++bit) {
      std::string changed = text;
      changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
      EXPECT_TRUE(seen.insert(hash(changed)).second) << size << " bytes, bit " << bit;
    }
  }
}

TEST(ContentHash, ZerosOfEveryLengthDiffer) {
  std::set<ContentHash> seen;
  for (size_t size = 0; size < 300; ++size) seen.insert(hash(std::string(size, '\0')));
  EXPECT_EQ(seen.size(), 300U);
}

TEST(ContentHash, TheOrderOfBlocksAndOfWordsCounts) {
  const std::string a(32, 'a');
  const std::string b(32, 'b');
  EXPECT_NE(hash(a + b), hash(b + a));
  std::string words;
  for (int i = 0; i < 4; ++i) words += std::string(8, static_cast<char>('a' + i));
  std::set<ContentHash> seen;
  std::string order = "0123";
  do {
    std::string permuted;
    for (const char at : order) permuted += words.substr(static_cast<size_t>(at - '0') * 8, 8);
    seen.insert(hash(permuted));
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(seen.size(), 24U);
}
