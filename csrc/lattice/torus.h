// SPDX-License-Identifier: Apache-2.0
// Numbers modulo 1 in fixed point of 192 bits, and on the wire the first bits of them.
#pragma once

#include "base/buffer.h"
#include "base/types.h"

namespace privml::lattice {

inline constexpr int kTorusBits = 192;

// (high 2^128 + middle 2^64 + low) / 2^192.
struct Torus {
  u64 high = 0, middle = 0, low = 0;
  friend bool operator==(const Torus&, const Torus&) = default;
};

// number / 2^bits, 1 <= bits <= 64.
inline Torus torus_of(u64 number, int bits) { return {number << (64 - bits), 0, 0}; }

// 2^-bits, 1 <= bits <= 192.
inline Torus power_of_half(int bits) {
  const u64 word = u64{1} << (63 - (bits - 1) % 64);
  const int limb = (bits - 1) / 64;
  return {limb == 0 ? word : 0, limb == 1 ? word : 0, limb == 2 ? word : 0};
}

inline Torus operator+(Torus a, Torus b) {
  const u128 low = u128{a.low} + b.low;
  const u128 middle = u128{a.middle} + b.middle + static_cast<u64>(low >> 64);
  return {a.high + b.high + static_cast<u64>(middle >> 64), static_cast<u64>(middle),
          static_cast<u64>(low)};
}

inline Torus operator-(Torus a) {
  const u64 low = u64{0} - a.low;
  const u64 borrow = static_cast<u64>(a.low != 0);
  const u64 middle = u64{0} - a.middle - borrow;
  return {u64{0} - a.high - static_cast<u64>((a.middle | borrow) != 0), middle, low};
}

inline Torus operator-(Torus a, Torus b) { return a + -b; }

// The multiple of 2^-bits at or below x, 1 <= bits <= 192.
inline Torus floor_of(Torus x, int bits) {
  const auto kept = [&](int above) {  // of the limb that follows so many bits
    return bits >= above + 64 ? ~u64{0} : bits <= above ? u64{0} : ~low_mask(above + 64 - bits);
  };
  return {x.high & kept(0), x.middle & kept(64), x.low & kept(128)};
}
// The nearest one, 1 <= bits <= 191.
inline Torus rounded(Torus x, int bits) { return floor_of(x + power_of_half(bits + 1), bits); }

i64 torus_bytes(i64 count, int bits);
// The first `bits` bits of each number, 1 to 192.
void write_torus(std::span<const Torus> numbers, int bits, MutableBytes out);
// Multiples of 2^-bits. Throws ProtocolError unless write_torus() could have written `in`.
void read_torus(Bytes in, int bits, std::span<Torus> out);

}  // namespace privml::lattice
