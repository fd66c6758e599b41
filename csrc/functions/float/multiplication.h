// SPDX-License-Identifier: Apache-2.0
// Products of floating-point numbers.
//
// Functionality  out = a * b of the format, as clear_float_multiply(). Numbers of up to 31 mantissa
//                bits. out may be a or b.
// Method         the product of the mantissas in 2q + 2 bits, their top bits being known (1), plus
//                half a unit of the smaller of both possible results; one comparison gives the top
//                bit and the carry and tie of the cut part; a private table of three bits of each
//                share and these gives the rounding of either case, and one selection the case.
// Leakage        none beyond length and format. Assumption: correlated OT, correlation-robust hash.
// Cost           multiplication.h of twopc with known top bits, a comparison of 2q + 1 bits, a
//                1-of-64 transfer, a selection, two conversions, and rounding.h's check.
// Source         SecFloat (Rathee et al., S&P 2022), Figure 4 and appendix I.
#pragma once

#include "functions/float/operation.h"
#include "functions/float/rounding.h"

namespace privml::floating {

FloatBinary float_multiply(FloatFormat f);

// On an Evaluator.
FloatShares multiply_floats(functions::Evaluator& evaluator, const FloatShares& a,
                            const FloatShares& b, FloatFormat f);

}  // namespace privml::floating
