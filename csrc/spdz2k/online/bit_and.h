// SPDX-License-Identifier: Apache-2.0
// Products of shared bits. Exclusive or is the addition of shares, negation the addition of 1.
//
// Functionality  out[i] = x[i] & y[i].
// Leakage        none. Cost: per product 2 bits and one bit triple; one exchange for all gates.
#pragma once

#include "spdz2k/shares/cost.h"
#include "spdz2k/shares/session.h"

namespace privml::spdz2k {

// One array of bits times another: out = x & y, or out ^= x & y. out may be x or y or another
// gate's input, for all inputs are read before anything is written.
template <class R>
struct AndGate {
  BitView<R> x, y;
  BitSpan<R> out;
  bool accumulate = false;
};

// Throws InvalidArgument if lengths differ.
template <class R>
void and_gates(Session<R>& session, std::span<const AndGate<R>> gates);
template <class R>
void and_bits(Session<R>& session, BitView<R> x, BitView<R> y, BitSpan<R> out);
template <class R>
void cost_and_bits(CostMeter& meter, i64 n);

}  // namespace privml::spdz2k
