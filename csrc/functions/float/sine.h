// SPDX-License-Identifier: Apache-2.0
// Sine and cosine of multiples of pi.
//
// Functionality  sin(pi a) and cos(pi a) in float32, error below one unit in the last place for
//                every float32 (make prove-secfloat); 0 and 1 at the integers from 2^24 on and at
//                infinity.
// Method         |a| mod 2 as a fixed-point number x of 37 fraction bits, exact for |a| >= 2^-14;
//                its two top bits a, b are the half and the quarter turn, f = b ? 2^36 - n : n of
//                the others n the distance d to the nearest multiple of pi. sin(pi d) = d P(d): d
//                normalised, P a polynomial of the cell of d (spline.h). Below 2^-14 d is |a|
//                itself.
// Leakage        none beyond length. Assumption: correlated OT, correlation-robust hash.
// Source         range reduction of SecFloat (Rathee et al., S&P 2022), Figures 7 and 14; the
//                polynomial is evaluated in fixed point, where one table serves all of d.
#pragma once

#include "functions/float/format.h"
#include "functions/float/result.h"
#include "functions/float/tables.h"

namespace privml::floating {

inline constexpr int kAngleBits = 38;  // of a mod 2: the integer bit and 37 fraction bits
inline constexpr int kLeastAngleExponent = -14,
                     kMostAngleExponent = 23;  // exponents of numbers that x depends on

inline FloatValue clear_sine_of(FloatValue a, bool cosine) {
  const bool small = !cosine && !a.zero && a.exponent < kLeastAngleExponent;
  u64 x = cosine ? u64{1} << (kAngleBits - 2) : 0;
  if (a.exponent >= kLeastAngleExponent && a.exponent <= kMostAngleExponent)
    x += a.mantissa << (a.exponent - kLeastAngleExponent);
  const bool half = (x >> (kAngleBits - 1)) & 1, quarter = (x >> (kAngleBits - 2)) & 1;
  const u64 n = x & low_mask(kAngleBits - 2);
  const u64 f = quarter ? (u64{1} << (kAngleBits - 2)) - n : n;
  const bool sign = half != (!cosine && a.sign);
  if (f == 0 && !small) return float_zero(kFloat32, sign);
  const int k = std::bit_width(f) - 1;
  const u64 d = small ? a.mantissa << 5 : (f << (kAngleBits - 2 - k)) >> 8;  // in [2^28, 2^29)
  const u64 p = static_cast<u64>(clear_spline(kSine, (f - quarter) >> 8));
  return clear_round_result(sign, (small ? a.exponent : k - (kAngleBits - 1)) + 1, (d * p) >> 29);
}

inline FloatValue clear_float_sin_pi(FloatValue a) { return clear_sine_of(a, false); }
inline FloatValue clear_float_cos_pi(FloatValue a) { return clear_sine_of(a, true); }

// The protocols.
FloatShares sin_pi_of(functions::Evaluator& evaluator, const FloatShares& a);
FloatShares cos_pi_of(functions::Evaluator& evaluator, const FloatShares& a);

}  // namespace privml::floating
