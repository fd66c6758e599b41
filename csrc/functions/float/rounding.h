// SPDX-License-Identifier: Apache-2.0
// Rounding of shared numbers to the nearest, ties to even, and the check that ends an operation.
//
// round_shift     floor(x / 2^s) + rounding in Z_{2^(bits - s)} (the paper's RNTE)
// truncate_sticky floor(x / 2^s) with its lowest bit set if anything is cut off (TRS)
// round_mantissa  x of `bits` bits with its top bit set to q + 1 bits
//                 (Round*); `carry` if it rounds up to
//                 2^bits and the exponent grows by one. For x = 0 mantissa and carry are
//                 2^q and 1: the caller replaces such results.
// check_float     over- and underflow of the exponent, zeros made canonical (FPCheck)
// Method          with x' = x + half a unit: one comparison of the complements' shares gives the
//                 carry out of the cut part, whether that part is zero (a tie) and the top bit.
//                 If there is a tie there is no carry, so both are one bit, converted once.
//                 The check: both bounds in one comparison's flights; the mantissa of infinity is
//                 the top bit, of which an XOR share is an additive one.
// Leakage         none beyond length, format. Assumption: correlated OT, correlation-robust hash.
// Cost            a comparison of s (round_mantissa: bits - 1) bits with equality, an AND, a
//                 conversion; check: two comparisons of p + 1 bits, an AND, a selection of two
//                 words and a conversion.
// Source          SecFloat (Rathee et al., S&P 2022), Figures 1 to 3 and appendix G.
#pragma once

#include "functions/float/shares.h"

namespace privml::floating {

// 1 <= s < bits.
functions::RingShares round_shift(functions::Evaluator& evaluator, const functions::RingShares& x,
                                  int bits, int s);
functions::RingShares truncate_sticky(functions::Evaluator& evaluator,
                                      const functions::RingShares& x, int bits, int s);

struct RoundedShares {
  functions::RingShares mantissa;
  functions::BitShares carry;
  functions::RingShares carry_ring;  // in Z_{2^carry_width}, if that is not 0
};
// q + 1 < bits.
RoundedShares round_mantissa_shares(functions::Evaluator& evaluator, const functions::RingShares& x,
                                    int bits, int q, int carry_width = 0);

// Exponents in Z_{2^width}, width >= p + 2, less than 2^(width-1) beyond either bound; those of
// zeros at most the greatest. The result's are of p + 2 bits.
FloatShares check_float(functions::Evaluator& evaluator, const FloatShares& a, FloatFormat f,
                        int width);
FloatShares check_float(functions::Evaluator& evaluator, const FloatShares& a, FloatFormat f);

// ~(x + added) as shares: party 0 holds ~(x0 + added), party 1 -x1.
functions::RingShares complement(const functions::Evaluator& evaluator,
                                 const functions::RingShares& x, u64 added, int bits);

// mantissa[2 i] and exponent[2 i + 1]: what one bit selects.
functions::RingShares interleaved(const functions::Evaluator& evaluator,
                                  const functions::RingShares& mantissa,
                                  const functions::RingShares& exponent);
// The width that holds both, and the parts again.
int pair_width(FloatFormat f);
functions::RingShares mantissas_of(const functions::Evaluator& evaluator,
                                   const functions::RingShares& pairs, FloatFormat f);
functions::RingShares exponents_of(const functions::Evaluator& evaluator,
                                   const functions::RingShares& pairs, FloatFormat f);

}  // namespace privml::floating
