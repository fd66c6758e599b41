// SPDX-License-Identifier: Apache-2.0
// Sums of floating-point numbers.
//
// Functionality  add, subtract: a + b, a - b of the format, as clear_float_add(); numbers of up to
//                30 mantissa bits. out may be a or b.
// Method         the operand of larger magnitude first. Exact: its mantissa shifted left by the
//                difference d <= q + 2 of exponents in 2q + 3 bits, the smaller one added or
//                subtracted; the sum's most significant place, shifted to the top, rounded. If d
//                is larger, the larger operand is the sum. Shifts are selections
//                by base-4 digits of the distance.
// Leakage        none beyond length and format. Assumption: correlated OT, correlation-robust hash.
// Cost           two extensions to 2q + 3 bits, a comparison of p + q + 1 bits, selections of both
//                parts; a lookup; shifts of 2q + 3 bits: 3 selections per base-4 digit, with which
//                the smaller mantissa's sign and the place's conversion travel; nonzero_bit.h on 2q
//                + 3 bits; rounding.h, its check's three comparisons of p + 1 bits in one.
// Source         SecFloat (Rathee et al., S&P 2022), Figure 5, with d <= q + 2 (printed: q
//                + 1), and IEEE's sign of exact zeros.
#pragma once

#include "functions/float/comparison.h"

namespace privml::floating {

FloatBinary float_add(FloatFormat f);
FloatBinary float_subtract(FloatFormat f);

// On an Evaluator.
FloatShares add_floats(functions::Evaluator& evaluator, const FloatShares& a, const FloatShares& b,
                       FloatFormat f);

// x * 2^shift in Z_{2^width}; `digits` are XOR-shared words of shift_digits(shift).
functions::RingShares shift_left(functions::Evaluator& evaluator, const functions::RingShares& x,
                                 const functions::RingShares& digits, int shift_bits, int width);
// With other selections and conversions in its first two flights; their results go to `others`.
functions::RingShares shift_left(functions::Evaluator& evaluator, const functions::RingShares& x,
                                 const functions::RingShares& digits, int shift_bits, int width,
                                 std::vector<functions::Selection> selections,
                                 const std::vector<functions::Conversion>& conversions,
                                 functions::Selected& others);
// Three bits per base-4 digit of the shift, one of them set if the digit is not 0; one bit for a
// top digit of one bit.
u64 shift_digits(u64 shift, int shift_bits);
int shift_digits_width(int shift_bits);

// x >= 0 shifted to the top of `bits` bits, and the shift; 0 stays 0.
struct NormalizedShares {
  functions::RingShares mantissa;
  functions::RingShares place;  // of the top bit, in Z_{2^place_width}; 0 for x = 0
  functions::BitShares zero;
};
NormalizedShares normalize(functions::Evaluator& evaluator, const functions::RingShares& x,
                           int bits, int place_width);

}  // namespace privml::floating
