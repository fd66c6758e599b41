// SPDX-License-Identifier: Apache-2.0
// Integer names, byte views, and helpers on rings Z_{2^bits} held in 64-bit words.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace privml {

// Words are copied to and from byte strings as they stand.
static_assert(std::endian::native == std::endian::little, "privml runs on little-endian machines");

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using u128 = unsigned __int128;
using i64 = std::int64_t;

using Bytes = std::span<const u8>;
using MutableBytes = std::span<u8>;

// All ones in the low `bits` positions, 0 <= bits <= 64.
constexpr u64 low_mask(int bits) { return bits >= 64 ? ~u64{0} : (u64{1} << bits) - 1; }

// The signed value of the ring element `x` of Z_{2^bits}, 1 <= bits <= 64.
constexpr i64 to_signed(u64 x, int bits) {
  const int unused = 64 - bits;
  return static_cast<i64>(x << unused) >> unused;
}

constexpr i64 ceil_div(i64 a, i64 b) { return (a + b - 1) / b; }

// Bytes that `count` values of `bits` bits take when packed without gaps.
constexpr i64 packed_bytes(i64 count, int bits) { return ceil_div(count * bits, 8); }

}  // namespace privml
