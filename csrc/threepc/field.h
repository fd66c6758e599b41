// SPDX-License-Identifier: Apache-2.0
// Arithmetic of F_p on byte lanes, 3 <= p <= 127: by folding for the Mersenne prime 127, by
// Barrett's reduction for any other prime. Lanes never overflow into one another:
//   Mersenne127: elements are 0..127 and 127 stands for 0; sums stay below 255. canonical() makes
//     127 a 0, which every zero test and every message needs.
//   Barrett: elements are 0..p-1.
// Barrett: t = (v * floor(2^16 / p)) >> 16 for v < p^2 < 2^14 is more than v/p - 1/4 - 1, so that
// v - t*p is in [0, 5p/4) and one conditional subtraction ends it.
// Source: MIZAR, section 3.3.1 and Figure 11, with the rounding of 2^k/p corrected to floor and a
// second fold. Device header.
#pragma once

#include "threepc/device.h"

namespace privml::threepc {
namespace {

template <class W>
PRIVML_DEVICE W lane(const W& x, int index) {
  return (x >> (8 * index)) & 0xffu;
}

struct Mersenne127 {
  static constexpr u32 kPrime = 0x7f7f7f7fu;
  PRIVML_DEVICE explicit Mersenne127(u32) {}

  // lanes up to 254 -> up to 127
  template <class W>
  PRIVML_DEVICE W fold(const W& x) const {
    return (x & kPrime) + ((x >> 7) & kLaneOne);
  }
  template <class W>
  PRIVML_DEVICE W canonical(const W& x) const {
    return (x + (((x + kLaneOne) >> 7) & kLaneOne)) & kPrime;
  }
  template <class W>
  PRIVML_DEVICE W add(const W& a, const W& b) const {
    return fold(W(a + b));
  }
  template <class W>
  PRIVML_DEVICE W negate(const W& a) const {
    return a ^ kPrime;
  }
  template <class W>
  PRIVML_DEVICE W multiply(const W& a, const W& b) const {
    const W even = lane(a, 0) * lane(b, 0) | (lane(a, 2) * lane(b, 2)) << 16;
    const W odd = lane(a, 1) * lane(b, 1) | (lane(a, 3) * lane(b, 3)) << 16;
    constexpr u32 kLow = 0x007f007fu;
    const W folded_even = (even & kLow) + ((even >> 7) & kLow);
    const W folded_odd = (odd & kLow) + ((odd >> 7) & kLow);
    return fold(W(folded_even | folded_odd << 8));
  }
};

struct Barrett {
  u32 prime;       // lanes
  u32 reciprocal;  // floor(2^16 / p)
  PRIVML_DEVICE explicit Barrett(u32 p) : prime(p * kLaneOne), reciprocal(65536u / p) {}

  // lanes below 2p -> below p
  template <class W>
  PRIVML_DEVICE W fold(const W& x) const {
    const W reached = (((x | kLaneTop) - prime) | x) & kLaneTop;
    return x - (spread(W(reached >> 7)) & prime);
  }
  template <class W>
  PRIVML_DEVICE W canonical(const W& x) const {
    return x;
  }
  template <class W>
  PRIVML_DEVICE W add(const W& a, const W& b) const {
    return fold(W(a + b));
  }
  template <class W>
  PRIVML_DEVICE W negate(const W& a) const {
    return fold(W(prime - a));
  }
  template <class W>
  PRIVML_DEVICE W multiply(const W& a, const W& b) const {
    const u32 p = prime & 0xffu;
    W product = splat<W>(0);
    PRIVML_UNROLL for (int k = 0; k < 4; ++k) {
      const W v = lane(a, k) * lane(b, k);
      product |= (v - ((v * reciprocal) >> 16) * p) << (8 * k);
    }
    return fold(product);
  }
};

template <class W, class Field>
PRIVML_DEVICE W subtract(const Field& field, const W& a, const W& b) {
  return field.add(a, field.negate(b));
}

// The lanes' lowest bits where an element is not zero.
template <class W, class Field>
PRIVML_DEVICE W nonzero(const Field& field, const W& x) {
  return ((field.canonical(x) + 0x7f7f7f7fu) >> 7) & kLaneOne;
}

}  // namespace
}  // namespace privml::threepc
