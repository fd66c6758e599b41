// SPDX-License-Identifier: Apache-2.0
// Blocks as elements of GF(2^128) = GF(2)[x] / (x^128 + x^7 + x^2 + x + 1), bit i of (hi, lo) being
// the coefficient of x^i; and blocks as vectors, for loops that have to stay in vector registers.
#pragma once

#include "crypto/block.h"

namespace privml::ot {

// (lo, hi) of a block; may alias arrays of blocks.
typedef u64 BlockVector __attribute__((vector_size(16), may_alias));

inline const BlockVector* as_vectors(const crypto::Block* blocks) {
  return reinterpret_cast<const BlockVector*>(blocks);
}
inline BlockVector* as_vectors(crypto::Block* blocks) {
  return reinterpret_cast<BlockVector*>(blocks);
}

inline BlockVector times_x(BlockVector b) {
  const BlockVector top = b >> 63;
  const BlockVector carry = __builtin_shufflevector(top, top, 1, 0);
  return (b << 1) ^ ((BlockVector{} - carry) & BlockVector{0x87, 1});
}

inline crypto::Block times_x(crypto::Block b) {
  const BlockVector product = times_x(BlockVector{b.lo, b.hi});
  return {product[0], product[1]};
}

}  // namespace privml::ot
