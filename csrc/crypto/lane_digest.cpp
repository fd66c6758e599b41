// SPDX-License-Identifier: Apache-2.0
#include "crypto/lane_digest.h"

#include <sodium.h>

#include <algorithm>
#include <cstring>

#include "base/multiversion.h"

namespace privml {
namespace {

constexpr int kLanes = 8;
constexpr i64 kLaneBlock = 128;  // what one compression takes from each lane
constexpr i64 kGroup = kLanes * kLaneBlock;
constexpr int kDigestWords = 4;

typedef u64 Lanes __attribute__((vector_size(8 * kLanes), aligned(8), may_alias));

constexpr u64 kStart[8] = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
                           0xa54ff53a5f1d36f1, 0x510e527fade682d1, 0x9b05688c2b3e6c1f,
                           0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};
// Digest of 32 bytes, no key, sequential mode.
constexpr u64 kParameters = 0x01010000 ^ 32;

constexpr u8 kSchedule[10][16] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                  {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
                                  {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
                                  {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
                                  {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
                                  {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
                                  {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
                                  {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
                                  {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
                                  {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

template <int bits>
[[gnu::always_inline]] inline void rotate_right(Lanes& x) {
  x = x >> bits | x << (64 - bits);
}

[[gnu::always_inline]] inline void mix(Lanes& a, Lanes& b, Lanes& c, Lanes& d, const Lanes& x,
                                       const Lanes& y) {
  a += b + x;
  d ^= a;
  rotate_right<32>(d);
  c += d;
  b ^= c;
  rotate_right<24>(b);
  a += b + y;
  d ^= a;
  rotate_right<16>(d);
  c += d;
  b ^= c;
  rotate_right<63>(b);
}

// Takes `groups` times 128 bytes into every lane; `counter` bytes were there before, `last` marks
// the end of the message.
PRIVML_TARGET_CLONES void compress(u64* state, const u8* message, i64 groups, u64 counter,
                                   bool last) {
  auto* chain = reinterpret_cast<Lanes*>(state);
  for (i64 group = 0; group < groups; ++group) {
    const auto* words = reinterpret_cast<const Lanes*>(message + group * kGroup);
    counter += kLaneBlock;
    Lanes v[16];
    for (int i = 0; i < 8; ++i) {
      v[i] = chain[i];
      v[i + 8] = Lanes{} + kStart[i];
    }
    v[12] ^= counter;
    v[14] ^= last && group == groups - 1 ? ~u64{0} : 0;
#pragma GCC unroll 12
    for (int round = 0; round < 12; ++round) {
      const u8* s = kSchedule[round % 10];
      mix(v[0], v[4], v[8], v[12], words[s[0]], words[s[1]]);
      mix(v[1], v[5], v[9], v[13], words[s[2]], words[s[3]]);
      mix(v[2], v[6], v[10], v[14], words[s[4]], words[s[5]]);
      mix(v[3], v[7], v[11], v[15], words[s[6]], words[s[7]]);
      mix(v[0], v[5], v[10], v[15], words[s[8]], words[s[9]]);
      mix(v[1], v[6], v[11], v[12], words[s[10]], words[s[11]]);
      mix(v[2], v[7], v[8], v[13], words[s[12]], words[s[13]]);
      mix(v[3], v[4], v[9], v[14], words[s[14]], words[s[15]]);
    }
    for (int i = 0; i < 8; ++i) chain[i] ^= v[i] ^ v[i + 8];
  }
}

}  // namespace

LaneDigest lane_digest(Bytes message) {
  u64 state[8 * kLanes];
  for (int i = 0; i < 8 * kLanes; ++i)
    state[i] = kStart[i / kLanes] ^ (i < kLanes ? kParameters : 0);
  // The last group is compressed apart, even where it is whole or the message empty.
  const i64 size = std::ssize(message);
  const i64 before = size == 0 ? 0 : (size - 1) / kGroup;
  compress(state, message.data(), before, 0, false);
  alignas(64) u8 tail[kGroup] = {};
  if (size > 0) {
    std::memcpy(tail, message.data() + before * kGroup,
                static_cast<size_t>(size - before * kGroup));
  }
  compress(state, tail, 1, static_cast<u64>(before * kLaneBlock), true);

  u64 digests[1 + kLanes * kDigestWords] = {static_cast<u64>(size)};
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < kDigestWords; ++i)
      digests[1 + kDigestWords * lane + i] = state[i * kLanes + lane];
  }
  LaneDigest out;
  crypto_generichash(out.data(), out.size(), reinterpret_cast<const u8*>(digests), sizeof digests,
                     nullptr, 0);
  return out;
}

}  // namespace privml
