// SPDX-License-Identifier: Apache-2.0
// Which numbers are zero.
//
// Functionality  out[i] = [x[i] = 0 mod 2^width], as shared bits or as numbers; two numbers are
//                equal if their difference is zero.
// Method         c = x + r is opened for a random r of which the bits are shared; x is zero if
//                all bits of c and r agree: a tree of products.
// Leakage        none: c is uniform. Cost: edabits(width), width opened bits and width-1 products
//                of bits, ceil(log2(width)) + 1 exchanges; 24 bytes from each party for 64 bits. As
//                numbers 1 opened bit, one exchange and one random bit more. In parts of
//                kComparisons.
// Source         "New primitives", Fig. 7.
#pragma once

#include "spdz2k/shares/cost.h"
#include "spdz2k/shares/session.h"

namespace privml::spdz2k {

// 1 <= width <= k; throws InvalidArgument otherwise and if lengths differ.
template <class R>
void equal_zero_bits(Session<R>& session, WordView<R> x, int width, BitSpan<R> out);
template <class R>
void cost_equal_zero_bits(CostMeter& meter, i64 n, int width);

template <class R>
void equal_zero(Session<R>& session, WordView<R> x, int width, WordSpan<R> out);
template <class R>
void cost_equal_zero(CostMeter& meter, i64 n, int width);

}  // namespace privml::spdz2k
