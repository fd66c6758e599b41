// SPDX-License-Identifier: Apache-2.0
// Transposition of 128 x 128 bits in two steps. The coarse one gathers, for every residue of rows
// modulo 8 and every byte of the columns, the bytes of rows r, r + 8, ..., r + 56 in one 64-bit
// word; the fine one transposes the bits within the bytes of eight such words.
//
// For files that are compiled for one instruction set each; so everything is in an unnamed
// namespace. A `Registers` has the static members
//   Words                      a vector of 64-bit words
//   kRows                      64 or 128: the rows that eight times eight registers hold
//   load(rows, stride, r, v)   row r, and row r + 64 if it fits beside
//   gather(v)                  the coarse step on the eight registers of one residue
//   store(v, j, bit, out)      the columns whose words lie in register j after both steps
#pragma once

#include <cstring>

#include "base/types.h"

namespace privml {
namespace {

// Swaps the off-diagonal squares of side `shift` between two rows (Warren, Hacker's Delight, 7-3).
template <int shift, class Words>
inline void exchange(Words& upper, Words& lower, u64 mask) {
  const Words moved = ((upper >> shift) ^ lower) & mask;
  lower ^= moved;
  upper ^= moved << shift;
}

// Squares of 4, 2 and 1 times `unit` bits.
template <int unit, class Words>
inline void exchange_three(Words (&v)[8], const u64 (&masks)[3]) {
  for (int i = 0; i < 4; ++i) exchange<4 * unit>(v[i], v[i + 4], masks[0]);
  for (int i : {0, 1, 4, 5}) exchange<2 * unit>(v[i], v[i + 2], masks[1]);
  for (int i : {0, 2, 4, 6}) exchange<unit>(v[i], v[i + 1], masks[2]);
}

template <class Registers>
inline void transpose_square(const u64* rows, i64 stride, u64* out) {
  constexpr u64 kMasks[3] = {0x0f0f0f0f0f0f0f0f, 0x3333333333333333, 0x5555555555555555};
  for (int part = 0; part < 128 / Registers::kRows; ++part) {
    typename Registers::Words square[8][8], v[8];
    for (int residue = 0; residue < 8; ++residue) {
      for (int i = 0; i < 8; ++i)
        Registers::load(rows, stride, part * Registers::kRows + 8 * i + residue, v[i]);
      Registers::gather(v);
      for (int j = 0; j < 8; ++j) square[residue][j] = v[j];
    }
    for (int j = 0; j < 8; ++j) {
      for (int residue = 0; residue < 8; ++residue) v[residue] = square[residue][j];
      exchange_three<1>(v, kMasks);
      for (int bit = 0; bit < 8; ++bit) Registers::store(v[bit], j, bit, out + part);
    }
  }
}

// Whether rows a stride of so many blocks apart fall into few sets of the nearest cache, where they
// push each other out.
constexpr bool crowded(i64 stride) { return stride % 16 == 0; }

// Strips of whole cache lines of crowded rows are copied together first.
template <class Registers>
inline void transpose_all(const u64* rows, i64 row_stride, i64 blocks, u64* out) {
  constexpr i64 kStrip = 4;
  i64 block = 0;
  for (; crowded(row_stride) && block + kStrip <= blocks; block += kStrip) {
    alignas(64) u64 strip[128 * 2 * kStrip];
    for (i64 r = 0; r < 128; ++r)
      std::memcpy(strip + r * 2 * kStrip, rows + 2 * (r * row_stride + block), 16 * kStrip);
    for (i64 b = 0; b < kStrip; ++b)
      transpose_square<Registers>(strip + 2 * b, 2 * kStrip, out + 256 * (block + b));
  }
  for (; block < blocks; ++block)
    transpose_square<Registers>(rows + 2 * block, 2 * row_stride, out + 256 * block);
}

}  // namespace
}  // namespace privml
