// SPDX-License-Identifier: Apache-2.0
// Shared bits: their products, and bits as numbers. Exclusive or is the addition of shares,
// negation the addition of 1.
//
// Functionality  and_bits, and_gates: out[i] = x[i] & y[i]; bits_to_ring: out[i] = x[i], 0 or 1 mod
//                2^k.
// Leakage        none. Cost: per product 2 bits and one bit triple, one exchange for all gates; per
//                number one random bit and 1 opened bit, one exchange.
// Source         bits_to_ring: "New primitives", Fig. 4.
#pragma once

#include "spdz2k/shares/side.h"

namespace privml::spdz2k {

// One array of bits times another: out = x & y, or out ^= x & y. out may be x or y or another
// gate's input, for all inputs are read before anything is written.
template <class R>
struct AndGate {
  BitView<R> x, y;
  BitSpan<R> out;
  bool accumulate = false;
};

// All throw InvalidArgument if lengths differ. On a meter the gates are of one length.
template <class R>
void and_gates(Side<R> side, std::span<const AndGate<R>> gates);
template <class R>
void and_bits(Side<R> side, BitView<R> x, BitView<R> y, BitSpan<R> out);

template <class R>
void bits_to_ring(Side<R> side, BitView<R> x, WordSpan<R> out);

}  // namespace privml::spdz2k
