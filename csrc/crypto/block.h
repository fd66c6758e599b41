// SPDX-License-Identifier: Apache-2.0
// A 128-bit block, the unit of keys, correlations and AES.
#pragma once

#include "base/types.h"

namespace privml::crypto {

struct alignas(16) Block {
  u64 lo = 0;
  u64 hi = 0;

  friend constexpr Block operator^(Block a, Block b) { return {a.lo ^ b.lo, a.hi ^ b.hi}; }
  friend constexpr Block operator&(Block a, Block b) { return {a.lo & b.lo, a.hi & b.hi}; }
  constexpr Block& operator^=(Block b) { return *this = *this ^ b; }
  friend constexpr bool operator==(Block a, Block b) { return a.lo == b.lo && a.hi == b.hi; }
};

constexpr Block kZeroBlock{};

constexpr u8 low_bit(Block b) { return static_cast<u8>(b.lo & 1); }

// `b` where bit is 1 and zero where bit is 0, without a branch.
constexpr Block select(u8 bit, Block b) {
  const u64 mask = u64{0} - (bit & 1);
  return {b.lo & mask, b.hi & mask};
}

}  // namespace privml::crypto
