// SPDX-License-Identifier: Apache-2.0
// Exactly uniform numbers below a small modulus from ChaCha20, for any number of threads.
// A number has its own byte of its own block. Its candidates are independent uniform numbers of w
// bits, the first below the modulus is taken:
//   the low w bits of its byte;
//   spares: the unused 8 - w bits of ceil(w / (8 - w)) rows make one more candidate per lane, which
//     goes to the first number of the lane that still lacks one;
//   the same with the next attempt's block (state word 14).
// Which candidate goes where depends on rejected candidates alone. So the result is exactly
// uniform, and a function of key and counter alone, whatever the vector width or device.
// Leakage: how many attempts a group of bytes takes is seen in the running time. It depends on
// rejected bytes only, which are independent of all resulting numbers.
// Cost: 16 numbers per quad and block; of 1024 numbers in a vector of 16 quads, one in seven takes
// a second block at moduli 126 and 61.
// Device header.
#pragma once

#include "threepc/chacha20.h"

namespace privml::threepc {
namespace {

// 1 <= modulus <= 128.
struct Bound {
  u32 low_bits;    // lanes: 2^w - 1 for the smallest w >= 1 with modulus <= 2^w
  u32 complement;  // lanes: 128 - modulus
  int width;       // w
};

PRIVML_DEVICE Bound bound_below(u32 modulus) {
  int width = 1;
  while ((1u << width) < modulus) ++width;
  return {((1u << width) - 1) * kLaneOne, (128 - modulus) * kLaneOne, width};
}

// All ones in the lanes of x (at most 127) that are not below the modulus.
template <class W>
PRIVML_DEVICE W too_large(const W& x, const Bound& bound) {
  return spread(W(((x + bound.complement) >> 7) & kLaneOne));
}

// Candidate number `first / each` of a lane from the unused bits of rows first, first + 1, ...
template <class W>
PRIVML_DEVICE W spare_candidate(const W (&block)[kBlockWords], int first, int each,
                                const Bound& bound) {
  const int unused = 8 - bound.width;
  const u32 bits = ((1u << unused) - 1) * kLaneOne;
  W spare = splat<W>(0);
  PRIVML_UNROLL for (int i = 0; i < kBlockWords; ++i) {
    if (i >= first && i < first + each) {
      const W high = (block[i] >> bound.width) & bits;
      spare |= (high << (unused * (i - first))) & bound.low_bits;
    }
  }
  return spare;
}

// Gives each lane's candidates to the numbers that lack one: `lacks` is all ones there.
template <class W>
PRIVML_DEVICE void take_candidates(const W (&block)[kBlockWords], const Bound& bound,
                                   W (&rows)[kBlockWords], W (&lacks)[kBlockWords]) {
  PRIVML_UNROLL for (int k = 0; k < kBlockWords; ++k) {
    rows[k] = select(lacks[k], rows[k], W(block[k] & bound.low_bits));
    lacks[k] = too_large(rows[k], bound);
  }
  const int unused = 8 - bound.width;
  const int each = (bound.width + unused - 1) / unused;
  PRIVML_ROLLED for (int first = 0; first + each <= kBlockWords; first += each) {
    const W spare = spare_candidate(block, first, each, bound);
    W free = ~too_large(spare, bound);
    PRIVML_UNROLL for (int k = 0; k < kBlockWords; ++k) {
      const W taken = lacks[k] & free;
      rows[k] = select(taken, rows[k], spare);
      lacks[k] ^= taken;
      free ^= taken;
    }
  }
}

// 16 rows of numbers below the modulus: one block per quad, row k from its word k.
template <class W>
PRIVML_DEVICE_ONCE void uniform_rows(const u32* key, u64 first, const Bound& bound,
                                     W (&rows)[kBlockWords]) {
  W lacks[kBlockWords];
  PRIVML_UNROLL for (int k = 0; k < kBlockWords; ++k) {
    rows[k] = splat<W>(0);
    lacks[k] = splat<W>(~0u);
  }
  W any_lacks = splat<W>(~0u);
  PRIVML_ROLLED for (u32 attempt = 0; any(any_lacks); ++attempt) {
    W block[kBlockWords];
    chacha20(key, first, attempt, block);
    take_candidates(block, bound, rows, lacks);
    any_lacks = splat<W>(0);
    PRIVML_UNROLL for (int k = 0; k < kBlockWords; ++k) any_lacks |= lacks[k];
  }
}

// Blocks per group that `rows` rows of numbers take.
PRIVML_DEVICE i64 group_blocks(int rows) {
  return static_cast<i64>((rows + kBlockWords - 1) / kBlockWords) * kQuads;
}

}  // namespace
}  // namespace privml::threepc
