// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#include <immintrin.h>

#include "base/transpose.h"

// g++ 12 reports its own AVX-512 headers here.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace privml {
namespace {

// One step of the byte transposition within 128-bit lanes: written side by side, the number of a
// register and the number of a byte in its lane are rotated by one bit.
template <int Registers>
[[gnu::always_inline]] inline void interleave(__m512i (&v)[Registers]) {
  constexpr int kHalf = Registers / 2;
  __m512i w[Registers];
#pragma GCC unroll 8
  for (int i = 0; i < kHalf; ++i) {
    w[2 * i] = _mm512_unpacklo_epi8(v[i], v[i + kHalf]);
    w[2 * i + 1] = _mm512_unpackhi_epi8(v[i], v[i + kHalf]);
  }
#pragma GCC unroll 16
  for (int i = 0; i < Registers; ++i) v[i] = w[i];
}

// Lane L of the four registers to the front of column 128 * L, for lanes below `lanes`.
[[gnu::always_inline]] inline void store_lanes(const __m512i* v, i64 lanes, u64* out) {
  const __m512i low01 = _mm512_shuffle_i64x2(v[0], v[1], 0x44);
  const __m512i high01 = _mm512_shuffle_i64x2(v[0], v[1], 0xee);
  const __m512i low23 = _mm512_shuffle_i64x2(v[2], v[3], 0x44);
  const __m512i high23 = _mm512_shuffle_i64x2(v[2], v[3], 0xee);
  constexpr i64 kLane = 2 * 128;
  _mm512_storeu_si512(out, _mm512_shuffle_i64x2(low01, low23, 0x88));
  if (lanes > 1) _mm512_storeu_si512(out + kLane, _mm512_shuffle_i64x2(low01, low23, 0xdd));
  if (lanes > 2) _mm512_storeu_si512(out + 2 * kLane, _mm512_shuffle_i64x2(high01, high23, 0x88));
  if (lanes > 3) _mm512_storeu_si512(out + 3 * kLane, _mm512_shuffle_i64x2(high01, high23, 0xdd));
}

// 128 rows of up to four blocks: a block is a lane.
void transpose_lanes(const u64* rows, i64 stride, i64 lanes, u64* out) {
  // Row 7 - i of eight into bit i of the bytes: gf2p8affine counts the rows of its matrix
  // downwards.
  const __m512i columns = _mm512_set1_epi64(static_cast<long long>(0x8040201008040201));
  const auto mask = static_cast<__mmask8>((1 << 2 * lanes) - 1);
  // Of eight rows (first index) and two bytes of their columns (second): the bits of each column.
  __m512i bits[16][8];
  for (int eight = 0; eight < 16; ++eight) {
    __m512i v[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i)
      v[i] = _mm512_maskz_loadu_epi64(mask, rows + (8 * eight + 7 - i) * stride);
    for (int level = 0; level < 3; ++level) interleave(v);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) bits[eight][j] = _mm512_gf2p8affine_epi64_epi8(columns, v[j], 0);
  }
  for (int j = 0; j < 8; ++j) {
    __m512i v[16];
#pragma GCC unroll 16
    for (int eight = 0; eight < 16; ++eight) v[eight] = bits[eight][j];
#pragma GCC unroll 4
    for (int level = 0; level < 4; ++level) interleave(v);
#pragma GCC unroll 4
    for (int m = 0; m < 16; m += 4) store_lanes(v + m, lanes, out + 2 * (16 * j + m));
  }
}

}  // namespace

void transpose_128_rows_gfni(const u64* rows, i64 stride, i64 blocks, u64* out) {
  for (i64 block = 0; block < blocks; block += 4) {
    transpose_lanes(rows + 2 * block, 2 * stride, blocks - block < 4 ? blocks - block : 4,
                    out + 256 * block);
  }
}

}  // namespace privml
#endif
