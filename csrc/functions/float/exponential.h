// SPDX-License-Identifier: Apache-2.0
// Exponentials.
//
// Functionality  2^a and e^a in float32, error below one unit in the last place for every float32
//                (make prove-secfloat); infinity and zero beyond the range.
// Method         a as a signed fixed-point number. 2^a: its integer part is the result's exponent,
//                the fraction the argument of a polynomial of cells. e^a: N = floor(a log2 e) by a
//                short product, e^a = 2^N e^(a - N ln 2). |a| < 2^-25 gives 1.
// Leakage        none beyond length. Assumption: correlated OT, correlation-robust hash.
// Source         SecFloat (Rathee et al., S&P 2022), Figure 12, with one table for both signs; e^a
//                is a footnote there: Cody and Waite's reduction (1980).
#pragma once

#include "functions/float/clear.h"
#include "functions/float/result.h"
#include "functions/float/tables.h"

namespace privml::floating {

inline constexpr int kLeastPower = -25, kMostPower = 6;  // exponents that are not trivial
inline constexpr int kPowerScale = 23 - kLeastPower;     // fraction bits of a * 2^23, exactly
inline constexpr int kBeyond = 300;                      // an exponent beyond the range

// |a| with kPowerScale fraction bits, 0 if it is trivial.
inline u64 clear_fixed_magnitude(FloatValue a) {
  if (a.exponent < kLeastPower || a.exponent > kMostPower) return 0;
  return a.mantissa << (a.exponent - kLeastPower);
}

inline FloatValue clear_power_result(FloatValue a, int exponent, u64 v) {
  FloatValue r = clear_round_result(false, exponent, v);
  if (a.exponent > kMostPower) r.exponent = a.sign ? -kBeyond : kBeyond;
  return clear_float_check(r, kFloat32);
}

inline FloatValue clear_float_exp2(FloatValue a) {
  const i64 magnitude = static_cast<i64>(clear_fixed_magnitude(a) >> (kPowerScale - 28));
  const i64 x = a.sign ? -magnitude : magnitude;  // 28 fraction bits
  const u64 fraction = static_cast<u64>(x) & low_mask(28);
  return clear_power_result(a, static_cast<int>(x >> 28),
                            static_cast<u64>(clear_spline(kExponentialOfTwo, fraction)));
}

inline constexpr int kExponentScale = 36;  // fraction bits of a
inline constexpr int kLogarithmScale = 12;
inline constexpr i64 kLogarithmOfE = 5909;           // log2 e at that scale
inline constexpr i64 kNaturalOfTwo = 47632711549;    // ln 2, scale 36
inline constexpr i64 kReductionBias = i64{1} << 41;  // 2^-7 at scale 48: keeps a - N ln 2 >= 0

// x = n ln 2 + rest, rest with 28 fraction bits; `bias` moves n down where x log2 e, a little too
// small, would round up. The cells of e^rest reach from -1/128 to 3/4.
struct ReducedExponent {
  int exponent;
  u64 rest;
};
inline ReducedExponent reduce_exponent(i64 x, i64 bias) {
  const i64 n = (x * kLogarithmOfE - bias) >> (kExponentScale + kLogarithmScale);
  const u64 rest = static_cast<u64>(x - n * kNaturalOfTwo) & low_mask(kExponentScale);
  return {static_cast<int>(n), rest >> (kExponentScale - 28)};
}

inline FloatValue clear_float_exp(FloatValue a) {
  const i64 magnitude =
      static_cast<i64>(clear_fixed_magnitude(a) >> (kPowerScale - kExponentScale));
  const ReducedExponent r = reduce_exponent(a.sign ? -magnitude : magnitude, kReductionBias);
  return clear_power_result(a, r.exponent, static_cast<u64>(clear_spline(kExponential, r.rest)));
}

// |a| with `scale` fraction bits in Z_{2^(scale + 8)}, in kReductionBits if scale is
// kExponentScale; `large` if a is beyond the range, and then it is 0.
inline constexpr int kReductionBits = kExponentScale + kLogarithmScale + kFloat32.exponent_bits();
struct FixedMagnitude {
  functions::RingShares magnitude, wide;
  functions::BitShares large;
};
FixedMagnitude fixed_magnitude(functions::Evaluator& evaluator, const FloatShares& a, int scale);
// e^x = v / 2^28 * 2^exponent of x in Z_{2^kReductionBits}.
struct PowerShares {
  functions::RingShares exponent, v;
};
PowerShares natural_power(functions::Evaluator& evaluator, const functions::RingShares& x,
                          i64 bias);

// The protocols.
FloatShares exp2_of(functions::Evaluator& evaluator, const FloatShares& a);
FloatShares exp_of(functions::Evaluator& evaluator, const FloatShares& a);

}  // namespace privml::floating
