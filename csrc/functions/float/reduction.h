// SPDX-License-Identifier: Apache-2.0
// The common part of the functions' range reductions: float32 to fixed point and back.
//
// Leakage        none beyond lengths and widths. Assumption: correlated OT, correlation-robust
//                hash.
// Source         SecFloat (Rathee et al., S&P 2022), Figure 7, steps 9 to 14, with the power of two
//                as XOR-shared words, which a product takes as they are (word_product.h).
#pragma once

#include "functions/float/function_operations.h"

namespace privml::floating {

// x = mantissa * 2^(exponent - least) mod 2^bits for least <= exponent <= most, else 0; and
// [-126 <= exponent < least], [most < exponent]. One lookup at the exponent gives the power and
// these bits.
struct MantissaShift {
  int least, most;
  int bits;
};
struct ShiftedMantissa {
  functions::RingShares x;
  functions::BitShares small, large;
};
ShiftedMantissa shift_mantissa(functions::Evaluator& evaluator, const FloatShares& a,
                               const MantissaShift& shift);

// The low bit of `angle` says whether to fold: f = fold ? 2^bits - rest : rest, and index = f -
// fold; rest and results in Z_{2^(bits + 1)}.
struct FoldedAngle {
  functions::BitShares fold;
  functions::RingShares f, index;
};
FoldedAngle fold_angle(functions::Evaluator& evaluator, const functions::RingShares& angle,
                       const functions::RingShares& rest, int bits);

// x < 2^bits in Z_{2^ring}, ring >= bits: x * 2^(bits - 1 - place of its top bit) in that ring;
// that place plus one in Z_{2^10}, 0 for x = 0; and [x = 0].
struct NormalizedMantissa {
  functions::RingShares mantissa, place;
  functions::BitShares zero;
};
NormalizedMantissa normalize_mantissa(functions::Evaluator& evaluator,
                                      const functions::RingShares& x, int bits, int ring);

// If `small`, replaces d = 0 and e = -fraction_bits by the mantissa of `a` in 29 bits and its
// exponent plus one.
void take_small(functions::Evaluator& evaluator, const FloatShares& a,
                const functions::BitShares& small, int fraction_bits, functions::RingShares& d,
                functions::RingShares& e);

}  // namespace privml::floating
