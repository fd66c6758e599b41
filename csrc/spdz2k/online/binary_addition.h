// SPDX-License-Identifier: Apache-2.0
// Sums of numbers of which the bits are shared.
//
// Functionality  out = (x + y) mod 2^width, all as planes: bit j of number i is plane[j * n + i].
//                In add_bits_public x is public. out may be an input.
// Method         carries of all positions by a tree of prefixes (Sklansky): depth
//                ceil(log2(width-1)) with about width/2 * log2(width) joints of two products each.
// Leakage        none. Cost: one exchange per level, and one more for the products of the bits of x
//                and y if both are shared.
// Source         J. Sklansky, Conditional-sum addition logic (1960); "New primitives", Fig. 11.
#pragma once

#include "spdz2k/shares/cost.h"
#include "spdz2k/shares/session.h"

namespace privml::spdz2k {

// 1 <= width <= k; throws InvalidArgument otherwise and if lengths differ.
template <class R>
void add_bits(Session<R>& session, BitView<R> x, BitView<R> y, int width, BitSpan<R> out);
template <class R>
void cost_add_bits(CostMeter& meter, i64 n, int width);

template <class R>
void add_bits_public(Session<R>& session, std::span<const u64> x, BitView<R> y, int width,
                     BitSpan<R> out);
template <class R>
void cost_add_bits_public(CostMeter& meter, i64 n, int width);

}  // namespace privml::spdz2k
