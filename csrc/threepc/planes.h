// SPDX-License-Identifier: Apache-2.0
// Bits of ring elements as byte lanes, and rows of lanes rotated by secret amounts.
// Device header.
#pragma once

#include "threepc/device.h"

namespace privml::threepc {
namespace {

// The bytes of words[..] - less as lanes, zeros from element `valid` on: planes[k * stride] holds
// byte k of the elements.
template <class W>
PRIVML_DEVICE void load_planes(const i64* words, int valid, u64 less, W* planes, int stride) {
  u32 bytes[8][kQuadsOf<W>];
  for (int q = 0; q < kQuadsOf<W>; ++q) {
    u64 four[4];
    for (int e = 0; e < 4; ++e) {
      four[e] = 4 * q + e < valid ? static_cast<u64>(words[4 * q + e]) - less : 0;
    }
    PRIVML_UNROLL for (int k = 0; k < 8; ++k) {
      u32 quad = 0;
      for (int e = 0; e < 4; ++e) quad |= static_cast<u32>((four[e] >> (8 * k)) & 0xff) << (8 * e);
      bytes[k][q] = quad;
    }
  }
  PRIVML_UNROLL for (int k = 0; k < 8; ++k) planes[k * stride] = load_quads<W>(bytes[k]);
}

template <class W>
PRIVML_DEVICE W plane_bit(const W* planes, int stride, int bit) {
  return (planes[(bit >> 3) * stride] >> (bit & 7)) & kLaneOne;
}

// Moves row j to row (j + amount) mod count in every lane; amounts are below count. Each power of
// two is one pass over all rows in a fixed order, so that addresses depend on nothing secret.
template <class W>
PRIVML_DEVICE void rotate_rows(W* rows, int stride, int count, const W& amount) {
  for (int bit = 0; (1 << bit) < count; ++bit) {
    const int by = 1 << bit;
    const W moves = spread(W((amount >> bit) & kLaneOne));
    int cycles = by, rest = count % by;  // greatest common divisor of by and count
    while (rest != 0) {
      const int next = cycles % rest;
      cycles = rest;
      rest = next;
    }
    for (int start = 0; start < cycles; ++start) {
      W before = rows[(start + count - by) % count * stride];
      int at = start;
      for (int step = 0; step < count / cycles; ++step) {
        const W here = rows[at * stride];
        rows[at * stride] = select(moves, here, before);
        before = here;
        at += by;
        if (at >= count) at -= count;
      }
    }
  }
}

}  // namespace
}  // namespace privml::threepc
