// SPDX-License-Identifier: Apache-2.0
// BLAKE2b's compression (RFC 7693, section 3.2) of several messages in step, for files that are
// compiled for one instruction set each. A `Lanes` has the static members
//   Words          64-bit words, one of each lane, with + and ^
//   all(x)         x in every lane
//   kTogether      registers in flight: several hide latencies, too many do not fit
//   rotate<n>(x)   to the right by n = 32, 24, 16 or 63 bits
#pragma once

#include <cstring>

#include "crypto/lane_digest.h"

namespace privml::crypto::lanes {
namespace {

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

template <class Lanes, class Words = typename Lanes::Words>
[[gnu::always_inline]] inline void mix(Words& a, Words& b, Words& c, Words& d, Words x, Words y) {
  a = a + x + b;
  d = Lanes::template rotate<32>(d ^ a);
  c += d;
  b = Lanes::template rotate<24>(b ^ c);
  a = a + y + b;
  d = Lanes::template rotate<16>(d ^ a);
  c += d;
  b = Lanes::template rotate<63>(b ^ c);
}

template <class Lanes>
[[gnu::always_inline]] inline typename Lanes::Words load(const void* from) {
  typename Lanes::Words words;
  std::memcpy(&words, from, sizeof words);
  return words;
}

// One round of the columns, then of the diagonals; `words` are the message's.
template <class Lanes>
[[gnu::always_inline]] inline void mix_columns(typename Lanes::Words (&v)[16], const u8* words,
                                               const u8* s) {
  const auto word = [=](int i) __attribute__((always_inline)) {
    return load<Lanes>(words + 8 * kLanes * s[i]);
  };
  for (int i = 0; i < 4; ++i)
    mix<Lanes>(v[i], v[4 + i], v[8 + i], v[12 + i], word(2 * i), word(2 * i + 1));
}
template <class Lanes>
[[gnu::always_inline]] inline void mix_diagonals(typename Lanes::Words (&v)[16], const u8* words,
                                                 const u8* s) {
  const auto word = [=](int i) __attribute__((always_inline)) {
    return load<Lanes>(words + 8 * kLanes * s[i]);
  };
  for (int i = 0; i < 4; ++i) {
    mix<Lanes>(v[i], v[4 + (i + 1) % 4], v[8 + (i + 2) % 4], v[12 + (i + 3) % 4], word(8 + 2 * i),
               word(9 + 2 * i));
  }
}

// The lanes from `first` on that Lanes::kTogether registers hold.
template <class Lanes>
void compress_some(u64* state, const u8* message, i64 groups, u64 counter, bool last, int first) {
  using Words = typename Lanes::Words;
  constexpr int kEach = sizeof(Words) / sizeof(u64), kParts = Lanes::kTogether;
  state += first;
  message += sizeof(u64) * static_cast<size_t>(first);
  for (i64 group = 0; group < groups; ++group) {
    const u8* words = message + group * kGroup;
    counter += kLaneBlock;
    Words v[kParts][16];
#pragma GCC unroll 4
    for (int p = 0; p < kParts; ++p) {
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) {
        v[p][i] = load<Lanes>(state + i * kLanes + p * kEach);
        v[p][i + 8] = Lanes::all(kStart[i]);
      }
      v[p][12] ^= Lanes::all(counter);
      v[p][14] ^= Lanes::all(last && group == groups - 1 ? ~u64{0} : 0);
    }
#pragma GCC unroll 12
    for (int round = 0; round < 12; ++round) {
      const u8* s = kSchedule[round % 10];
#pragma GCC unroll 4
      for (int p = 0; p < kParts; ++p) mix_columns<Lanes>(v[p], words + 8 * kEach * p, s);
#pragma GCC unroll 4
      for (int p = 0; p < kParts; ++p) mix_diagonals<Lanes>(v[p], words + 8 * kEach * p, s);
    }
#pragma GCC unroll 4
    for (int p = 0; p < kParts; ++p) {
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) {
        u64* to = state + i * kLanes + p * kEach;
        const Words chain = load<Lanes>(to) ^ v[p][i] ^ v[p][i + 8];
        std::memcpy(to, &chain, sizeof chain);
      }
    }
  }
}

template <class Lanes>
void compress_all(u64* state, const u8* message, i64 groups, u64 counter, bool last) {
  constexpr int kSome = Lanes::kTogether * sizeof(typename Lanes::Words) / sizeof(u64);
  for (int first = 0; first < kLanes; first += kSome)
    compress_some<Lanes>(state, message, groups, counter, last, first);
}

}  // namespace
}  // namespace privml::crypto::lanes
