// SPDX-License-Identifier: Apache-2.0
// The bits of a shared number.
//
// Functionality  out[j * n + i] = bit j of x[i], 0 <= j < width.
// Method         c = x - r is opened for a random r with shared bits; the bits are those of c + r.
// Leakage        none: c is uniform. Cost: edabits(width), width opened bits and the addition
//                (binary_addition.h). In parts of kComparisons.
// Source         "New primitives", section IX-D.
#pragma once

#include "spdz2k/shares/cost.h"
#include "spdz2k/shares/session.h"

namespace privml::spdz2k {

// 1 <= width <= k; throws InvalidArgument otherwise and if lengths differ.
template <class R>
void bit_decomposition(Session<R>& session, WordView<R> x, int width, BitSpan<R> out);
template <class R>
void cost_bit_decomposition(CostMeter& meter, i64 n, int width);

}  // namespace privml::spdz2k
