// SPDX-License-Identifier: Apache-2.0
// The ChaCha20 block function on one block per quad: the pseudo-random function behind common
// randomness of two parties.
// Layout of the state: words 4-11 key, 12-13 the 64-bit block counter (low word first), 14 the
// attempt (see sample.h), 15 zero. With a counter below 2^32 this is RFC 8439 with the nonce
// (0, attempt, 0) in little-endian words.
// Source: RFC 8439, section 2.3. Device header.
#pragma once

#include "threepc/device.h"

namespace privml::threepc {
namespace {

constexpr int kBlockWords = 16;

template <class W>
PRIVML_DEVICE W rotate_left(const W& x, int by) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  // One byte shuffle instead of two shifts: there is no rotation of words before AVX-512.
  if constexpr (sizeof(W) == 32) {
    typedef u8 Bytes __attribute__((vector_size(32)));
    const Bytes bytes = reinterpret_cast<const Bytes&>(x);
    if (by == 16)
      return reinterpret_cast<W>(__builtin_shufflevector(
          bytes, bytes, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13, 18, 19, 16, 17, 22,
          23, 20, 21, 26, 27, 24, 25, 30, 31, 28, 29));
    if (by == 8)
      return reinterpret_cast<W>(__builtin_shufflevector(
          bytes, bytes, 3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14, 19, 16, 17, 18, 23,
          20, 21, 22, 27, 24, 25, 26, 31, 28, 29, 30));
  }
#endif
  return (x << by) | (x >> (32 - by));
}

template <class W>
PRIVML_DEVICE void quarter_round(W& a, W& b, W& c, W& d) {
  a += b;
  d = rotate_left(W(d ^ a), 16);
  c += d;
  b = rotate_left(W(b ^ c), 12);
  a += b;
  d = rotate_left(W(d ^ a), 8);
  c += d;
  b = rotate_left(W(b ^ c), 7);
}

// The counters first + q of quads q, in two words.
template <class W>
PRIVML_DEVICE void count_blocks(u64 first, W& low, W& high) {
  u32 lows[kQuadsOf<W>], highs[kQuadsOf<W>];
  for (int q = 0; q < kQuadsOf<W>; ++q) {
    lows[q] = static_cast<u32>(first + q);
    highs[q] = static_cast<u32>((first + q) >> 32);
  }
  low = load_quads<W>(lows);
  high = load_quads<W>(highs);
}

// out[k]: word k of the blocks with counters first, first + 1, ... (one per quad of W).
template <class W>
PRIVML_DEVICE void chacha20(const u32* key, u64 first, u32 attempt, W (&out)[kBlockWords]) {
  constexpr u32 kConstants[4] = {0x61707865u, 0x3320646eu, 0x79622d32u, 0x6b206574u};
  W low, high;
  count_blocks(first, low, high);
  W x[kBlockWords];
  PRIVML_UNROLL for (int k = 0; k < 4; ++k) x[k] = splat<W>(kConstants[k]);
  PRIVML_UNROLL for (int k = 0; k < 8; ++k) x[4 + k] = splat<W>(key[k]);
  x[12] = low;
  x[13] = high;
  x[14] = splat<W>(attempt);
  x[15] = splat<W>(0);
  PRIVML_ROLLED for (int round = 0; round < 10; ++round) {
    quarter_round(x[0], x[4], x[8], x[12]);
    quarter_round(x[1], x[5], x[9], x[13]);
    quarter_round(x[2], x[6], x[10], x[14]);
    quarter_round(x[3], x[7], x[11], x[15]);
    quarter_round(x[0], x[5], x[10], x[15]);
    quarter_round(x[1], x[6], x[11], x[12]);
    quarter_round(x[2], x[7], x[8], x[13]);
    quarter_round(x[3], x[4], x[9], x[14]);
  }
  PRIVML_UNROLL for (int k = 0; k < 4; ++k) out[k] = x[k] + kConstants[k];
  PRIVML_UNROLL for (int k = 0; k < 8; ++k) out[4 + k] = x[4 + k] + key[k];
  out[12] = x[12] + low;
  out[13] = x[13] + high;
  out[14] = x[14] + attempt;
  out[15] = x[15];
}

}  // namespace
}  // namespace privml::threepc
