// SPDX-License-Identifier: Apache-2.0
// Blocks as elements of GF(2^128) = GF(2)[x] / (x^128 + x^7 + x^2 + x + 1), bit i of (hi, lo) being the
// coefficient of x^i.
#pragma once

#include "crypto/block.h"

namespace privml {

constexpr Block times_x(Block b) {
  const u64 carry = u64{0} - (b.hi >> 63);
  return {(b.lo << 1) ^ (carry & 0x87), (b.hi << 1) | (b.lo >> 63)};
}

}  // namespace privml
