// SPDX-License-Identifier: Apache-2.0
// 1 / x.
//
// Functionality  x > 0 of the format `in`; y ~ 1 / x in the format `out`, each of 2..32 bits with a
//                scale of 0..bits - 2. If 1 / x is too large for `out`, the largest number of
//                `out`. x = 0 counts as the smallest positive number; a negative x is the caller's
//                error and gives a meaningless value.
// Method         x = 2^k v with 1 <= v < 2 (normalization.h), 1 / v (unit_reciprocal.h), times the
//                power of two that the place k selects; up to 9 bits one table.
// Error          below 1.25 units in the last place (docs/fixed-point-math.md).
// Leakage        none beyond length and formats. Assumption: correlated OT, correlation-robust
//                hash.
// Source         SiRNN (Rathee et al., S&P 2021), Figures 5 and 6.
// Cost           normalization.h, unit_reciprocal.h, a multiply_word and a truncate_reduce.
#pragma once

#include "functions/fixed/function.h"

namespace privml::fixed {

// Additive shares in Z_{2^in.bits} and Z_{2^out.bits}. Throws InvalidArgument on other formats or
// lengths that differ. The clear function computes the same numbers, bit for bit.
functions::RingShares reciprocal(functions::Evaluator& evaluator, const functions::RingShares& x,
                                 FixedFormat in, FixedFormat out);
void clear_reciprocal(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y);

}  // namespace privml::fixed
