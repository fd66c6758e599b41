// SPDX-License-Identifier: Apache-2.0
// 1 / sqrt(x) for x > 0 and sqrt(x) for x >= 0.
//
// Functionality  formats of up to 32 bits on both sides. sqrt(0) = 0; rsqrt(0) = rsqrt(2^-s), the
//                value at the least positive number. A negative x is the caller's error and gives
//                the result of x mod 2^(bits-1). If a whole binade's results exceed the output
//                format, they come out positive and at least a quarter of the largest number.
// Method         x is normalised to m * 2^B * 4^e with m in [1, 2), B a bit; a piecewise polynomial
//                of m, chosen by B too, gives the function of m * 2^B; the power 2^e, a shared
//                one-hot word, multiplies it; one truncation. Inputs of up to 9 bits: one table.
// Accuracy       below one unit in the last place; rsqrt below 1.4 where results lie above half of
//                the largest number, where polynomials are held below it; see
//                docs/fixed-point-math.md.
// Leakage        none beyond length and formats. Assumption: correlated OT, correlation-robust
//                hash.
// Cost           normalization.h, piecewise.h, a word product, truncate_reduce.
// Source         SiRNN (Rathee et al., S&P 2021), Figure 6, with a piecewise polynomial in place of
//                its table and Goldschmidt iteration.
#pragma once

#include "functions/fixed/function.h"

namespace privml::fixed {

functions::RingShares rsqrt(functions::Evaluator& evaluator, const functions::RingShares& x,
                            FixedFormat in, FixedFormat out);
void clear_rsqrt(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y);

// rsqrt with a relative error below 2^-significant besides, for 14 or 20 bits: fewer messages where
// the output's format is finer.
template <int significant>
functions::RingShares rsqrt_significant(functions::Evaluator& evaluator,
                                        const functions::RingShares& x, FixedFormat in,
                                        FixedFormat out);
template <int significant>
void clear_rsqrt_significant(std::span<const i64> x, FixedFormat in, FixedFormat out,
                             std::span<i64> y);

functions::RingShares sqrt(functions::Evaluator& evaluator, const functions::RingShares& x,
                           FixedFormat in, FixedFormat out);
void clear_sqrt(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y);

}  // namespace privml::fixed
