// SPDX-License-Identifier: Apache-2.0
// What the functions' range reductions have in common: float32 to fixed point and back.
//
// Leakage        none beyond lengths and widths. Assumption: correlated OT, correlation-robust
//                hash.
// Source         SecFloat (Rathee et al., S&P 2022), Figure 7, steps 9 to 14, with the power of two
//                as XOR-shared words, which a product takes as they are (word_product.h).
#pragma once

#include "secfloat/function_steps.h"

namespace privml {

// x = mantissa * 2^(exponent - least) mod 2^bits for least <= exponent <= most, else 0; and
// [-126 <= exponent < least], [most < exponent]. One lookup at the exponent gives the power and
// these bits.
struct MantissaShift {
  int least, most;
  int bits;
};
struct ShiftedMantissa {
  RingShares x;
  BitShares small, large;
};
ShiftedMantissa shift_mantissa(Steps& steps, const FloatShares& a, const MantissaShift& shift);

// turn's low bit says whether to fold: f = fold ? 2^bits - rest : rest, and f - fold; rest and
// results in Z_{2^(bits + 1)}.
struct FoldedTurn {
  BitShares fold;
  RingShares f, index;
};
FoldedTurn fold_turn(Steps& steps, const RingShares& turn, const RingShares& rest, int bits);

// x < 2^bits in Z_{2^ring}, ring >= bits: x * 2^(bits - 1 - place of its top bit) in that ring;
// that place plus one in Z_{2^10}, 0 for x = 0; and [x = 0].
struct NormalizedMantissa {
  RingShares mantissa, place;
  BitShares zero;
};
NormalizedMantissa normalize_mantissa(Steps& steps, const RingShares& x, int bits, int ring);

// Where `small`: the mantissa and exponent of `a`, of 29 bits and plus one, in place of d = 0 and
// e = -fraction_bits.
void take_small(Steps& steps, const FloatShares& a, const BitShares& small, int fraction_bits,
                RingShares& d, RingShares& e);

}  // namespace privml
