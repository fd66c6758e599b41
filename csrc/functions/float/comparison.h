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

#include "functions/float/operation.h"
#include "functions/float/rounding.h"

namespace privml::floating {

FloatRelation float_less_than(FloatFormat f);
FloatRelation float_less_equal(FloatFormat f);
FloatRelation float_equal(FloatFormat f);

FloatBinary float_maximum(FloatFormat f);
FloatUnary float_relu(FloatFormat f);

// Local.
FloatUnary float_negate(FloatFormat f);
FloatUnary float_absolute(FloatFormat f);

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
