// SPDX-License-Identifier: Apache-2.0
// 1 / (1 + x) for x >= 0 in few messages, where a table of lines has room for all x.
//
// Functionality  y ~ 1 / (1 + x) in the format `out`, each of 2..32 bits with a scale of
//                0..bits - 2. A negative x is the caller's error and gives the result of x mod
//                2^(bits-1).
// Method         no normalisation: a piecewise polynomial of degree 1 on cells of equal length, a
//                truncation; up to 9 bits one table. The cells at x = 0 need to be as short as the
//                result is fine, so only short ranges are served.
// Error          below one unit in the last place: up to a quarter of the lines, half of the
//                rounding, a quarter of the coefficients.
// Leakage        none beyond length and formats. Assumption: correlated OT, correlation-robust
//                hash.
// Cost           piecewise.h of degree 1 and a truncate_reduce.
// Source         piecewise.h; chords of a convex function.
#pragma once

#include "functions/fixed/function.h"

namespace privml::fixed {

// Whether the table has at most 2^10 lines.
bool has_reciprocal1p(FixedFormat in, FixedFormat out);

// Additive shares in Z_{2^in.bits} and Z_{2^out.bits}. Throws InvalidArgument on formats that are
// not served and on lengths that differ. The clear function computes the same numbers, bit for bit.
functions::RingShares reciprocal1p(functions::Evaluator& evaluator, const functions::RingShares& x,
                                   FixedFormat in, FixedFormat out);
void clear_reciprocal1p(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y);

}  // namespace privml::fixed
