// SPDX-License-Identifier: Apache-2.0
// Arithmetic modulo a public number below 2^48 on secret numbers, in a time that does not depend on
// them.
#pragma once

#include "base/divisor.h"
#include "crypto/block.h"

namespace privml::twopc {

class Modulus {
 public:
  // Throws InvalidArgument unless 2 < modulus < 2^48.
  explicit Modulus(u64 modulus) : divisor_(modulus) {
    expect(modulus > 2 && modulus < u64{1} << 48, "Modulus: numbers are below 2^48");
  }

  u64 value() const { return divisor_.divisor(); }
  u64 of(u64 x) const { return divisor_.divide(x).remainder; }
  // After the first half 16 bits at a time, which the remainder leaves room for.
  u64 of(u64 high, u64 low) const {
    u64 out = of(high);
    for (int shift = 48; shift >= 0; shift -= 16)
      out = of(out << 16 | (low >> shift & low_mask(16)));
    return out;
  }
  // Of numbers below the modulus.
  u64 sum(u64 a, u64 b) const {
    const u64 s = a + b, below = u64{0} - static_cast<u64>(s < value());
    return s - (value() & ~below);
  }
  u64 difference(u64 a, u64 b) const { return sum(a, value() - b); }
  // a, or -a if `flip` is all ones.
  u64 flipped(u64 a, u64 flip) const { return (a & ~flip) | (difference(0, a) & flip); }
  u64 product(u64 a, u64 b) const {
    const u128 x = u128{a} * b;
    return of(static_cast<u64>(x >> 64), static_cast<u64>(x));
  }
  // The inverse of a public number modulo a prime.
  u64 inverse(u64 a) const {
    u64 out = 1;
    for (u64 power = of(a), rest = value() - 2; rest > 0; rest >>= 1) {
      if (rest & 1) out = product(out, power);
      power = product(power, power);
    }
    return out;
  }

 private:
  PublicDivisor divisor_;
};

}  // namespace privml::twopc
