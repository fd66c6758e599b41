// SPDX-License-Identifier: Apache-2.0
// Exactly uniform numbers below a small modulus from ChaCha20, for any number of threads.
// Every number has its own byte of its own block: the byte's low bits are taken, and where they are
// not below the modulus, those of the same byte in the next attempt's block (state word 14). So the
// result is a function of key and counter alone, whatever the vector width or device, and there is
// no statistical distance to account for.
// Leakage: how many attempts a group of bytes takes is seen in the running time. It depends on
// rejected bytes only, which are independent of all numbers that come out.
// Cost: 16 numbers per quad and block; at modulus 127 about 2.1 blocks per 16 * 64 numbers' share.
// Device header.
#pragma once

#include "threepc/chacha20.h"

namespace privml::threepc {
namespace {

// 1 <= modulus <= 128.
struct Bound {
  u32 low_bits;    // lanes: 2^w - 1 for the smallest w with modulus <= 2^w
  u32 complement;  // lanes: 128 - modulus
};

PRIVML_DEVICE Bound bound_below(u32 modulus) {
  u32 mask = 0;
  while (mask + 1 < modulus) mask = 2 * mask + 1;
  return {mask * kLaneOne, (128 - modulus) * kLaneOne};
}

// The lanes' top bits where a lane of x (at most 127) is not below the modulus.
template <class W>
PRIVML_DEVICE W too_large(const W& x, const Bound& bound) {
  return (x + bound.complement) & kLaneTop;
}

// 16 rows of numbers below the modulus: one block per quad, row k from its word k.
template <class W>
PRIVML_DEVICE void uniform_rows(const u32* key, u64 first, const Bound& bound,
                                W (&rows)[kBlockWords]) {
  chacha20(key, first, 0, rows);
  W rejected = splat<W>(0);
  PRIVML_UNROLL for (int k = 0; k < kBlockWords; ++k) {
    rows[k] &= bound.low_bits;
    rejected |= too_large(rows[k], bound);
  }
  PRIVML_ROLLED for (u32 attempt = 1; any(rejected); ++attempt) {
    W fresh[kBlockWords];
    chacha20(key, first, attempt, fresh);
    rejected = splat<W>(0);
    PRIVML_UNROLL for (int k = 0; k < kBlockWords; ++k) {
      const W again = spread(W(too_large(rows[k], bound) >> 7));
      rows[k] = select(again, rows[k], W(fresh[k] & bound.low_bits));
      rejected |= too_large(rows[k], bound);
    }
  }
}

// Blocks per group that `rows` rows of numbers take.
PRIVML_DEVICE i64 group_blocks(int rows) {
  return static_cast<i64>((rows + kBlockWords - 1) / kBlockWords) * kQuads;
}

}  // namespace
}  // namespace privml::threepc
