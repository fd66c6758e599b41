// SPDX-License-Identifier: Apache-2.0
// The end of every function: a fixed-point number of one of two binades, rounded to float32.
//
// Functionality  v in [2^28 - 16, 2^30 - 32) in Z_{2^31}, exponent e in Z_{2^10}: v / 2^28 * 2^e
//                with 23 fraction bits, to the nearest. Ties go away from zero: they are none of
//                the exact value.
// Leakage        none beyond length. Assumption: correlated OT, correlation-robust hash.
// Cost           a comparison of 30 and one of 6 bits, a selection, three conversions; ending with
//                zeros: a selection; by the exponent: two comparisons of 9 bits more.
// Source         after SecFloat (Rathee et al., S&P 2022), Figures 1 and 3.
#pragma once

#include "functions/float/function_operations.h"
#include "functions/float/value.h"

namespace privml::floating {

inline constexpr int kResultBits = 31;
inline constexpr u64 kUpperBinade = (u64{1} << 29) - 16;  // rounds to the upper binade

inline FloatValue clear_round_result(bool sign, int exponent, u64 v) {
  const bool upper = v >= kUpperBinade;
  return {false, sign, exponent + upper, ((upper ? v : 2 * v) + 32) >> 6};
}

// The sign is +, for the caller to set.
FloatShares round_result(functions::Evaluator& evaluator, const functions::RingShares& exponent,
                         const functions::RingShares& v);

// Zeros and (if there can be any) infinities in their canonical form.
FloatShares finish_result(functions::Evaluator& evaluator, const FloatShares& r,
                          const functions::BitShares& zero,
                          const functions::BitShares* infinite = nullptr);
// The same by the exponent alone, from -384 to 385: below -126 zero, above 127 infinity.
FloatShares finish_by_exponent(functions::Evaluator& evaluator, const FloatShares& r);

}  // namespace privml::floating
