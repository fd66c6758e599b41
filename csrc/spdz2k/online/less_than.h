// SPDX-License-Identifier: Apache-2.0
// Comparison of numbers in two's complement.
//
// Functionality  out[i] = [x[i] < y[i]], for x and y mod 2^width as signed numbers.
//                Range::restricted needs |x - y| < 2^(width-1), as for both within 2^(width-2), and
//                is wrong beyond; Range::full is right for all.
// Leakage        none. Cost: restricted, one most significant bit; full, three of them and one
//                product of bits. As numbers (less_than) and not bits: 1 more opened bit and a
//                random bit each.
// Source         "New primitives", section IV-C.
#pragma once

#include "spdz2k/shares/cost.h"
#include "spdz2k/shares/session.h"

namespace privml::spdz2k {

enum class Range { restricted, full };

// 1 <= width <= k; throws InvalidArgument otherwise and if lengths differ.
template <class R>
void less_than_bits(Session<R>& session, WordView<R> x, WordView<R> y, int width, Range range,
                    BitSpan<R> out);
template <class R>
void cost_less_than_bits(CostMeter& meter, i64 n, int width, Range range);

template <class R>
void less_than(Session<R>& session, WordView<R> x, WordView<R> y, int width, Range range,
               WordSpan<R> out);
template <class R>
void cost_less_than(CostMeter& meter, i64 n, int width, Range range);

}  // namespace privml::spdz2k
