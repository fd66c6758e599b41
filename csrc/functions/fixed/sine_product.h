// SPDX-License-Identifier: Apache-2.0
// Sine and cosine as sums of products; each party computes one factor from its own share.
//
// Functionality  sine.h's sin and cos; the last place of the result may depend on the shares.
// Method         x / (2 pi) modulo 1 as in sine.h; its shares add up without a wrap,
//                so sin(u + b) = sin u cos b + cos u sin b by addition_formula.h, of any accuracy,
//                and no digit of it is ever opened as a table's index.
// Error          0.85 units in the last place, for any x, if in.bits + out.scale <= 60; the
//                clear twin rounds to the nearest, and the result differs from it by at most one
//                unit.
// Leakage        none beyond length and formats. Assumption: correlated OT, correlation-robust
//                hash.
// Cost           a sign extension to out.scale + in.bits + 4 bits, addition_formula.h with two
//                terms, a truncate_reduce, an extension.
// Source         Guo et al., "Real-number functions", section 5.2, Algorithm 6, where MW takes the
//                place of the reduction modulo 2 pi.
#pragma once

#include "functions/fixed/function.h"

namespace privml::fixed {

functions::RingShares sin_product(functions::Evaluator& evaluator, const functions::RingShares& x,
                                  FixedFormat in, FixedFormat out);
void clear_sin_product(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y);

functions::RingShares cos_product(functions::Evaluator& evaluator, const functions::RingShares& x,
                                  FixedFormat in, FixedFormat out);
void clear_cos_product(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y);

}  // namespace privml::fixed
