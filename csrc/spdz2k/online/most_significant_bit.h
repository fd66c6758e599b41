// SPDX-License-Identifier: Apache-2.0
// The highest bit of a number, its sign in two's complement.
//
// Functionality  out[i] = bit width-1 of x[i] mod 2^width.
// Method         c = x + r is opened for a random r of which the bits are shared; the bit is that
//                of c - r: c's, r's and the borrow [c' < r'] of the positions below.
// Leakage        none: c is uniform. Cost: edabits(width) and width opened bits, then a comparison
//                of width-1 bits (bit_less_than.h); 30 bytes from each party for 64 bits. In parts
//                of kComparisons.
// Source         "New primitives", Fig. 6, with the result left as a shared bit.
#pragma once

#include "spdz2k/shares/cost.h"
#include "spdz2k/shares/session.h"

namespace privml::spdz2k {

// 1 <= width <= k; throws InvalidArgument otherwise and if lengths differ.
template <class R>
void most_significant_bit(Session<R>& session, WordView<R> x, int width, BitSpan<R> out);
template <class R>
void cost_most_significant_bit(CostMeter& meter, i64 n, int width);

}  // namespace privml::spdz2k
