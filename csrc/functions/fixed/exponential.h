// SPDX-License-Identifier: Apache-2.0
// e^x.
//
// Functionality  exp_negative: x <= 0 of the format `in`; out ~ e^x in the format `out`. A positive
//                x is the caller's error and gives a meaningless value.
//                exp: any x; if e^x is too large for `out`, the exponential of the largest
//                number of `in` for which it is not. Formats of 2..32 bits, scales 0..bits - 2.
// Method         exp: e^x = e^most * e^-(most - x) with words as wide as the output, where `most`
//                is the largest x in range.
// Error          at most 1.5 units in the last place for 16 bits and scales 8..14 (see
//                docs/fixed-point-math.md for what is measured).
// Leakage        none beyond length and formats. Assumption: correlated OT, correlation-robust
//                hash.
// Source         SiRNN (Rathee et al., S&P 2021), section V-A, Figure 3, with rounded tables.
// Cost           negative_exponential.h; exp that can exceed its range extends x and takes a ReLU
// first.
#pragma once

#include "functions/fixed/format.h"
#include "functions/fixed/function.h"

namespace privml::fixed {

// Additive shares in Z_{2^in.bits} and Z_{2^out.bits}. Throws InvalidArgument on other formats or
// lengths that differ. The clear function computes the same numbers, bit for bit.
functions::RingShares exp_negative(functions::Evaluator& evaluator, const functions::RingShares& x,
                                   FixedFormat in, FixedFormat out);
void clear_exp_negative(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y);

functions::RingShares exp(functions::Evaluator& evaluator, const functions::RingShares& x,
                          FixedFormat in, FixedFormat out);
void clear_exp(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y);

// Which form of e^x for x <= 0 serves which formats.
enum class ExponentialForm {
  table,    // exp_negative: arguments of up to 32 bits
  spline,   // exponential_spline.h
  exact,    // exponential_product.h's exp_negative_exact
  product,  // exp_negative_product: its last place may depend on the shares
};

bool has_exponential_form(ExponentialForm form, FixedFormat in, FixedFormat out);

// The one with the fewest bits on the wire of those whose results do not depend on the shares. It
// is chosen by formats alone, with a fixed price of correlations, so that both parties, the plain
// engine and a program's cost agree with every provider. The table if there is none.
ExponentialForm cheapest_exponential_form(FixedFormat in, FixedFormat out);

}  // namespace privml::fixed
