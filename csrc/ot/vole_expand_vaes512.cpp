// SPDX-License-Identifier: Apache-2.0
// Sixteen AES states in flight, of four vectors of counters under four keys: that hides the latency
// of a round also where rows are short, reads each round key once for four vectors, and leaves the
// sums to be taken from registers.
#if defined(__x86_64__)
#include <immintrin.h>

#include "ot/vole_fold.h"

// g++ 12 reports its own AVX-512 headers here.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace privml {
namespace {

inline __m512i round_key(const Block* at) {
  return _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(at)));
}

// Sums 2^Bits states, `Vectors` apart, into the first, and upper halves into planes, `Vectors`
// apart too.
template <int Bits, int Vectors>
[[gnu::always_inline]] inline void fold_states(__m512i* states, __m512i* planes) {
  if constexpr (Bits > 0) {
    constexpr int kHalf = Vectors << (Bits - 1);
    fold_states<Bits - 1, Vectors>(states, planes);
    fold_states<Bits - 1, Vectors>(states + kHalf, planes);
    __m512i& plane = planes[(Bits - 1) * Vectors];
    plane = _mm512_xor_si512(plane, states[kHalf]);
    states[0] = _mm512_xor_si512(states[0], states[kHalf]);
  }
}

// AES of Vectors * 4 counters under 2^Bits keys; `first` holds the first four counters.
template <int Bits, int Vectors>
[[gnu::always_inline]] inline void encrypt(const Block* keys, i64 key_stride, __m512i first,
                                           __m512i* states) {
  constexpr int kSeeds = 1 << Bits;
#pragma GCC unroll 16
  for (int x = 0; x < kSeeds; ++x) {
    const __m512i key = round_key(keys + x * key_stride);
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) {
      const __m512i step = _mm512_set_epi64(0, 4 * v, 0, 4 * v, 0, 4 * v, 0, 4 * v);
      states[x * Vectors + v] = _mm512_xor_si512(_mm512_add_epi64(first, step), key);
    }
  }
#pragma GCC unroll 9
  for (int r = 1; r < 10; ++r) {
#pragma GCC unroll 16
    for (int x = 0; x < kSeeds; ++x) {
      const __m512i key = round_key(keys + x * key_stride + r);
#pragma GCC unroll 16
      for (int v = 0; v < Vectors; ++v)
        states[x * Vectors + v] = _mm512_aesenc_epi128(states[x * Vectors + v], key);
    }
  }
#pragma GCC unroll 16
  for (int x = 0; x < kSeeds; ++x) {
    const __m512i key = round_key(keys + x * key_stride + 10);
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v)
      states[x * Vectors + v] = _mm512_aesenclast_epi128(states[x * Vectors + v], key);
  }
}

// Vectors * 4 blocks of every row; 2^Inner seeds at a time.
template <int Digit, int Inner, int Vectors>
[[gnu::always_inline]] inline void expand_columns(const Block* keys, i64 key_stride, u64 position,
                                                  Block* total, Block* planes, i64 stride,
                                                  bool add) {
  const __m512i first =
      _mm512_add_epi64(_mm512_maskz_set1_epi64(0x55, static_cast<long long>(position)),
                       _mm512_set_epi64(0, 3, 0, 2, 0, 1, 0, 0));
  __m512i sums[Vectors], plane[Digit * Vectors];
  for (int v = 0; v < Vectors; ++v) {
    sums[v] = _mm512_setzero_si512();
    for (int b = 0; b < Digit; ++b) {
      plane[b * Vectors + v] =
          add ? _mm512_loadu_si512(planes + b * stride + 4 * v) : _mm512_setzero_si512();
    }
  }
  for (int group = 0; group < 1 << (Digit - Inner); ++group) {
    __m512i states[Vectors << Inner];
    encrypt<Inner, Vectors>(keys + (group << Inner) * key_stride, key_stride, first, states);
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) {
      fold_states<Inner, Vectors>(states + v, plane + v);
      sums[v] = _mm512_xor_si512(sums[v], states[v]);
      for (int b = Inner; b < Digit; ++b) {
        __m512i& upper = plane[b * Vectors + v];
        if (group >> (b - Inner) & 1) upper = _mm512_xor_si512(upper, states[v]);
      }
    }
  }
  for (int v = 0; v < Vectors; ++v) {
    for (int b = 0; b < Digit; ++b)
      _mm512_storeu_si512(planes + b * stride + 4 * v, plane[b * Vectors + v]);
    _mm512_storeu_si512(total + 4 * v, sums[v]);
  }
}

template <int Digit>
void expand(const Block* keys, i64 key_stride, u64 position, i64 blocks, Block* total,
            Block* planes, i64 stride, bool add) {
  constexpr int kInner = Digit < 2 ? Digit : 2;
  constexpr int kVectors = 16 >> kInner;
  i64 at = 0;
  for (; at + 4 * kVectors <= blocks; at += 4 * kVectors) {
    expand_columns<Digit, kInner, kVectors>(keys, key_stride, position + static_cast<u64>(at),
                                            total + at, planes + at, stride, add);
  }
  for (; at < blocks; at += 4) {
    expand_columns<Digit, Digit, 1>(keys, key_stride, position + static_cast<u64>(at), total + at,
                                    planes + at, stride, add);
  }
}

}  // namespace

void vole_expand_vaes512(const Block* round_keys, i64 key_stride, int digit, u64 position,
                         i64 blocks, Block* total, const FoldPlanes& planes) {
  Block* first = planes.first;
  const i64 stride = planes.stride;
  const bool add = planes.add;
  switch (digit) {
    case 1:
      return expand<1>(round_keys, key_stride, position, blocks, total, first, stride, add);
    case 2:
      return expand<2>(round_keys, key_stride, position, blocks, total, first, stride, add);
    case 3:
      return expand<3>(round_keys, key_stride, position, blocks, total, first, stride, add);
    case 4:
      return expand<4>(round_keys, key_stride, position, blocks, total, first, stride, add);
  }
}

}  // namespace privml
#endif
