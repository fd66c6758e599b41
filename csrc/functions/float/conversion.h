// SPDX-License-Identifier: Apache-2.0
// Floating-point numbers from and to fixed-point numbers and integers, other formats, and whole
// numbers.
//
// Functionality  as the clear functions of clear.h, ties to even: from_fixed x / 2^scale, x signed
//                in Z_{2^bits}; to_fixed a 2^scale to the nearest integer in Z_{2^bits}, its ends
//                beyond them; cast to the nearest number of another format; round_to_integer to
//                the nearest whole number, zeros keep their signs. Integers have scale 0. Numbers
//                of up to 31 mantissa bits; 2 <= bits <= 64 (to_fixed of q = 31: 32); 0 <= scale
//                < 64.
// Method         from_fixed: sign, magnitude, the top place brought to the top, rounded. to_fixed,
//                round_to_integer: the mantissa shifted left by the exponent in a ring that keeps
//                all of it, then rounded at a fixed place; exponents beyond are taken out. cast:
//                rounding.h's rounding and check in the longer exponent.
// Leakage        none beyond length, formats. Assumption: correlated OT, correlation-robust hash.
// Cost           from_fixed: a comparison, nonzero_bit.h and shifts of `bits` bits, rounding.h;
//                to_fixed: two comparisons of exponents, a lookup, shifts of bits + q + 1 bits, a
//                rounding of q + 1 bits, two selections; beyond 63 - q bits the same for that
//                width, and a comparison, a lookup and shifts of `bits` bits more;
//                round_to_integer: the same in 2q + 2 bits and a normalization of q + 1 bits; cast:
//                rounding.h, local if the new format has as many exponent and no fewer mantissa
//                bits.
// Source         after SecFloat (Rathee et al., S&P 2022), section V.
#pragma once

#include "functions/float/operation.h"
#include "functions/float/rounding.h"

namespace privml::floating {

Operation<FloatShares, functions::RingShares> float_from_fixed(int bits, int scale, FloatFormat f);
Operation<functions::RingShares, FloatShares> float_to_fixed(FloatFormat f, int bits, int scale);
FloatUnary float_cast(FloatFormat from, FloatFormat to);
FloatUnary float_round_to_integer(FloatFormat f);

// On an Evaluator.
FloatShares cast_floats(functions::Evaluator& evaluator, const FloatShares& a, FloatFormat from,
                        FloatFormat to);
FloatShares floats_from_fixed(functions::Evaluator& evaluator, const functions::RingShares& x,
                              int bits, int scale, FloatFormat f);
functions::RingShares floats_to_fixed(functions::Evaluator& evaluator, const FloatShares& a,
                                      FloatFormat f, int bits, int scale);
FloatShares rounded_floats(functions::Evaluator& evaluator, const FloatShares& a, FloatFormat f);

}  // namespace privml::floating
