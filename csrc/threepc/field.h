// SPDX-License-Identifier: Apache-2.0
// Arithmetic of F_p on byte lanes, 3 <= p <= 127: by folding for the Mersenne prime 127, by
// Barrett's reduction for any other prime. Lanes never overflow into one another:
//   Mersenne127: elements are 0..127 and 127 also represents 0; sums stay below 255. canonical()
//   makes
//     127 a 0, which every zero test and every message needs.
//   Barrett: elements are 0..p-1.
// Products are reduced in halves of 16 bits. Barrett, for p of w bits and v < p^2: with
// c = max(0, 2w - 8), t = ((v >> c) * floor(2^(7+w) / p)) >> (7 + w - c) has factors below 2^8 and
//   v/p - t < 1 + (2^c - 1)/p + 2^(w-7)   (the cut bits of v; the cut reciprocal; the last shift),
// below 2 for w < 7 and below 3 for w = 7: v - t*p needs one conditional subtraction, or two.
// Source: MIZAR, section 3.3.1 and Figure 11, with the rounding of 2^k/p corrected to floor and a
// second fold. Device header.
#pragma once

#include "threepc/device.h"

namespace privml::threepc {
namespace {

// Lanes 0 and 2, or 1 and 3, in halves of 16 bits.
constexpr u32 kHalfByte = 0x00ff00ffu;

// Products modulo 2^16 of the halves.
template <class W>
PRIVML_DEVICE W multiply_halves(const W& a, const W& b) {
#ifndef __CUDACC__
  if constexpr (sizeof(W) > sizeof(u32)) {
    typedef std::uint16_t Halves __attribute__((vector_size(sizeof(W))));
    return (W)((Halves)a * (Halves)b);
  }
#endif
  return W((a & 0xffffu) * (b & 0xffffu) & 0xffffu) | W((a >> 16) * (b >> 16)) << 16;
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
    const W even = multiply_halves(W(a & kHalfByte), W(b & kHalfByte));
    const W odd = multiply_halves(W((a >> 8) & kHalfByte), W((b >> 8) & kHalfByte));
    constexpr u32 kLow = 0x007f007fu;
    const W folded_even = (even & kLow) + ((even >> 7) & kLow);
    const W folded_odd = (odd & kLow) + ((odd >> 7) & kLow);
    return fold(W(folded_even | folded_odd << 8));
  }
};

struct Barrett {
  u32 prime;       // lanes
  u32 reciprocal;  // halves: floor(2^(7+w) / p)
  int cut, shift;  // c, 7 + w - c
  bool twice;      // w = 7
  PRIVML_DEVICE explicit Barrett(u32 p) : prime(p * kLaneOne) {
    int width = 1;
    while ((1u << width) < p) ++width;
    reciprocal = (1u << (7 + width)) / p * 0x00010001u;
    cut = width > 4 ? 2 * width - 8 : 0;
    shift = 7 + width - cut;
    twice = width == 7;
  }

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
    const W even = reduce(multiply_halves(W(a & kHalfByte), W(b & kHalfByte)));
    const W odd = reduce(multiply_halves(W((a >> 8) & kHalfByte), W((b >> 8) & kHalfByte)));
    return fold(W(even | odd << 8));
  }

 private:
  // halves below p^2 -> below 2p
  template <class W>
  PRIVML_DEVICE W reduce(const W& v) const {
    const W high = (v >> cut) & (0xffffu >> cut) * 0x00010001u;
    const W product = multiply_halves(high, splat<W>(reciprocal));
    const W quotient = (product >> shift) & (0xffffu >> shift) * 0x00010001u;
    const u32 p = prime & kHalfByte;
    const W rest = v - multiply_halves(quotient, splat<W>(p));
    if (!twice) return rest;
    const W reached = ((rest + (0x80008000u - p)) >> 15) & 0x00010001u;
    return rest - (((reached << 8) - reached) & p);
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
