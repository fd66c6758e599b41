// SPDX-License-Identifier: Apache-2.0
#include "crypto/lane_digest.h"

#include <gtest/gtest.h>
#include <sodium.h>

#include <cstring>
#include <set>
#include <vector>

#include "crypto/prg.h"

namespace privml::crypto {
namespace {

// The definition, with libsodium's BLAKE2b for every lane.
LaneDigest slow_digest(const std::vector<u8>& message) {
  std::vector<u8> padded = message;
  padded.resize(std::max<size_t>(1, (message.size() + 1023) / 1024) * 1024);
  const u64 size = message.size();
  std::vector<u8> digests(8 + 8 * 32);
  std::memcpy(digests.data(), &size, 8);
  for (size_t lane = 0; lane < 8; ++lane) {
    std::vector<u8> words;
    for (size_t at = 8 * lane; at < padded.size(); at += 64)
      words.insert(words.end(), padded.begin() + at, padded.begin() + at + 8);
    crypto_generichash(digests.data() + 8 + 32 * lane, 32, words.data(), words.size(), nullptr, 0);
  }
  LaneDigest out;
  crypto_generichash(out.data(), 32, digests.data(), digests.size(), nullptr, 0);
  return out;
}

TEST(LaneDigest, IsBlake2bOfTheLanes) {
  for (size_t size : {0, 1, 63, 64, 1000, 1023, 1024, 1025, 2048, 5000, 16384, 32767}) {
    std::vector<u8> message(size);
    Prg(Block{size, 9}).fill_bytes(message);
    EXPECT_EQ(lane_digest(message), slow_digest(message)) << size;
  }
}

#if defined(__x86_64__)
void compare_compression(lanes::Compress* compress) {
  for (const i64 groups : {0, 1, 2, 7}) {
    for (const bool last : {false, true}) {
      std::vector<u8> message(groups * lanes::kGroup);
      Prg({1, 2}).fill_bytes(message);
      std::vector<u64> expected(8 * lanes::kLanes);
      Prg({3, 4}).fill_ring(expected, 64);
      auto state = expected;
      lanes::compress_portable(expected.data(), message.data(), groups, 77 * 128, last);
      compress(state.data(), message.data(), groups, 77 * 128, last);
      EXPECT_EQ(state, expected) << groups << " " << last;
    }
  }
}

TEST(LaneDigest, CompressesTheSameWithAvx2) {
  if (!lanes::avx2_supported()) GTEST_SKIP() << "this processor has no AVX2";
  compare_compression(lanes::compress_avx2);
}
TEST(LaneDigest, CompressesTheSameWithAvx512) {
  if (!lanes::avx512_supported()) GTEST_SKIP() << "this processor has no AVX-512";
  compare_compression(lanes::compress_avx512);
}
#endif

TEST(LaneDigest, EveryBitAndTheLengthCount) {
  std::vector<u8> message(1100);
  std::set<LaneDigest> seen{lane_digest(message)};
  for (size_t bit = 0; bit < 8 * message.size(); bit += 3) {
    message[bit / 8] ^= static_cast<u8>(1 << bit % 8);
    EXPECT_TRUE(seen.insert(lane_digest(message)).second) << bit;
    message[bit / 8] ^= static_cast<u8>(1 << bit % 8);
  }
  for (size_t size = 0; size < message.size(); size += 50)
    EXPECT_TRUE(seen.insert(lane_digest({message.data(), size})).second) << size;
}

}  // namespace
}  // namespace privml::crypto
