// SPDX-License-Identifier: Apache-2.0
// The natural logarithm.
//
// Functionality  log(x) for x > 0, formats of up to 32 bits on both sides. log(0) = log(2^-s), the
//                value at the least positive number; a negative x is the caller's error and gives
//                the result of x mod 2^(bits-1). If results are below the output format, they
//                are those of numbers of the lowest binade that is not.
// Method         x is normalised to m * 2^(k-s) with m in [1, 2); ln m is a piecewise polynomial,
//                (k - s) ln 2 a public multiple of the shared place; one truncation for both.
//                Inputs of up to 9 bits: one table.
// Accuracy       below one unit in the last place; see docs/fixed-point-math.md.
// Leakage        none beyond length and formats. Assumption: correlated OT, correlation-robust
//                hash.
// Cost           normalization.h, piecewise.h, word_product.h for the place, truncate_reduce.
// Source         after SiRNN (Rathee et al., S&P 2021), Figure 6.
#pragma once

#include "functions/fixed/function.h"

namespace privml::fixed {

functions::RingShares log(functions::Evaluator& evaluator, const functions::RingShares& x,
                          FixedFormat in, FixedFormat out);
void clear_log(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y);

}  // namespace privml::fixed
