// SPDX-License-Identifier: Apache-2.0
// e^x for x <= 0 as a product of two exponentials; each party computes one from its own share.
//
// Functionality  exponential.h's exp_negative.
// Method         e^-(u + b) = e^-u e^-b by addition_formula.h: one party tabulates e^-u, the other
//                multiplies by e^-b; one rounding, and zero if the argument is out of range.
//   exp_negative_exact    enough bits that no rounding of the factors shows in the result, whatever
//                         the shares: floor(2^scale e^x + c), where the plan finds the constant c
//                         between 0.3 and 0.7 by looking at every argument. So formats are limited:
//                         has_exp_negative_exact says.
//   exp_negative_product  any formats, fewer bits: the last place may depend on the shares.
// Error          0.71 units in the last place; the clear twin of exp_negative_product rounds to the
//                nearest, and the protocol's result differs from it by at most one unit.
// Leakage        none beyond length and formats; the recipient of a result of exp_negative_product
//                learns a rounding that also depends on the shares, so a little about x below the
//                last place. Assumption: correlated OT, correlation-robust hash.
// Cost           addition_formula.h, a truncate_reduce, exponential_range.h.
// Source         Guo et al., "Real-number functions", section 5.3, Algorithms 4 and 5, with the
//                constants folded into the table; correct rounding by distance from the boundary
//                after Lefevre, Muller, Tisserand (IEEE TC 1998).
#pragma once

#include "functions/fixed/function.h"

namespace privml::fixed {

// Throw InvalidArgument on other formats or lengths that differ.
bool has_exp_negative_exact(FixedFormat in, FixedFormat out);
functions::RingShares exp_negative_exact(functions::Evaluator& evaluator,
                                         const functions::RingShares& x, FixedFormat in,
                                         FixedFormat out);
void clear_exp_negative_exact(std::span<const i64> x, FixedFormat in, FixedFormat out,
                              std::span<i64> y);

bool has_exp_negative_product(FixedFormat in, FixedFormat out);
functions::RingShares exp_negative_product(functions::Evaluator& evaluator,
                                           const functions::RingShares& x, FixedFormat in,
                                           FixedFormat out);
void clear_exp_negative_product(std::span<const i64> x, FixedFormat in, FixedFormat out,
                                std::span<i64> y);

}  // namespace privml::fixed
