// SPDX-License-Identifier: Apache-2.0
// Comparisons of floating-point numbers, maximum and ReLU.
//
// Functionality  XOR shares of [a < b], [a <= b], [a = b]; the larger one of two (the first of two
//                zeros); max(a, 0) with +0 for all others; |a| and -a (local). Zeros are equal, and
//                canonical on input. Numbers of up to 31 mantissa bits (p + q <= 61).
// Method         a canonical number maps to an integer in order, (-1)^sign (2^q e + m) with the
//                biased exponent e (as IEEE's bits do), where zeros of both signs are 0: the
//                mantissa is extended by its top bit, which is the complement of the zero bit, and
//                one sign of a difference (or one test for zero) decides.
// Leakage        none beyond length and format. Assumption: correlated OT, correlation-robust hash.
// Cost           two extensions from q + 1 to p + q + 3 bits, a selection in p + q + 2 bits each,
//                and a comparison of p + q + 2 bits; maximum also a selection of two words and an
//                AND of two bits; relu a selection of two words and an AND.
// Source         SecFloat (Rathee et al., S&P 2022), Figure 15, there by four comparisons.
#pragma once

#include "functions/float/rounding.h"

namespace privml::floating {

void float_less_than(ot::Party& party, FloatView a, FloatView b, FloatFormat f, std::span<u8> out);
void cost_float_less_than(ot::CostMeter& meter, i64 n, FloatFormat f);
void float_less_equal(ot::Party& party, FloatView a, FloatView b, FloatFormat f, std::span<u8> out);
void cost_float_less_equal(ot::CostMeter& meter, i64 n, FloatFormat f);
void float_equal(ot::Party& party, FloatView a, FloatView b, FloatFormat f, std::span<u8> out);
void cost_float_equal(ot::CostMeter& meter, i64 n, FloatFormat f);

void float_maximum(ot::Party& party, FloatView a, FloatView b, FloatFormat f, FloatSpan out);
void cost_float_maximum(ot::CostMeter& meter, i64 n, FloatFormat f);
void float_relu(ot::Party& party, FloatView a, FloatFormat f, FloatSpan out);
void cost_float_relu(ot::CostMeter& meter, i64 n, FloatFormat f);

// Local.
void float_negate(ot::Party& party, FloatView a, FloatSpan out);
void float_absolute(ot::Party& party, FloatView a, FloatSpan out);

// On an Evaluator. Mantissas of both, one array after the other, in Z_{2^width}, width > q + 1.
functions::RingShares extended_mantissas(functions::Evaluator& evaluator, const FloatShares& a,
                                         const FloatShares& b, FloatFormat f, int width);
// 2^q e + m of both in Z_{2^width}, from mantissas in at least as many bits.
functions::RingShares magnitudes(functions::Evaluator& evaluator,
                                 const functions::RingShares& mantissas, const FloatShares& a,
                                 const FloatShares& b, FloatFormat f, int width);
functions::BitShares less_than(functions::Evaluator& evaluator, const FloatShares& a,
                               const FloatShares& b, FloatFormat f);
// bit ? b : a. Signs and zero bits take one exchange, words a selection.
FloatShares choose_floats(functions::Evaluator& evaluator, const functions::BitShares& bit,
                          const FloatShares& a, const FloatShares& b, FloatFormat f);

}  // namespace privml::floating
