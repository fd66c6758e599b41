// SPDX-License-Identifier: Apache-2.0
// e^x for x <= 0 by a piecewise polynomial.
//
// Functionality  exponential.h's exp_negative.
// Method         piecewise.h on the low bits of -x, zero where the higher ones say so.
// Error          below one unit in the last place.
// Leakage        none beyond length and formats. Assumption: correlated OT, correlation-robust
//                hash.
// Cost           piecewise.h, a truncate_reduce, exponential_range.h.
#pragma once

#include "functions/fixed/function.h"

namespace privml::fixed {

// Throws InvalidArgument if has_exp_negative_spline is false, on other formats, or on lengths
// that differ. The clear function computes the same numbers, bit for bit.
bool has_exp_negative_spline(FixedFormat in, FixedFormat out);
functions::RingShares exp_negative_spline(functions::Evaluator& evaluator,
                                          const functions::RingShares& x, FixedFormat in,
                                          FixedFormat out);
void clear_exp_negative_spline(std::span<const i64> x, FixedFormat in, FixedFormat out,
                               std::span<i64> y);

}  // namespace privml::fixed
