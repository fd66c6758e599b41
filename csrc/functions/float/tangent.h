// SPDX-License-Identifier: Apache-2.0
// Tangent of multiples of pi.
//
// Functionality  tan(pi a) in float32, error below one unit in the last place for every float32
//                but the half-integers, whose result is an infinity (make prove-secfloat).
// Method         |a| mod 1 as a fixed-point number of 37 fraction bits; its two top bits are the
//                quarter Q, the others the distance d in [0, 1/4] to the nearest multiple of 1/2.
//                tan(pi d) = d T(d) in quarters 0 and 3, 1 / tan(pi d) = 1/d * U(d) in the other
//                two; T, U and the reciprocal of the normalised d are polynomials of cells.
// Leakage        none beyond length. Assumption: correlated OT, correlation-robust hash.
// Source         range reduction of SecFloat (Rathee et al., S&P 2022), Figure 13, steps 1 to 21;
//                no division: the tangent's reciprocal has a table of its own.
#pragma once

#include "functions/float/format.h"
#include "functions/float/result.h"
#include "functions/float/tables.h"

namespace privml::floating {

inline FloatValue clear_float_tan_pi(FloatValue a) {
  constexpr int kBits = 37;  // fraction bits of a mod 1
  const bool small = !a.zero && a.exponent < -14;
  u64 x = 0;
  if (a.exponent >= -14 && a.exponent <= 22)
    x = (a.mantissa << (a.exponent + 14)) & low_mask(kBits);
  const bool negative = (x >> (kBits - 1)) & 1, fold = (x >> (kBits - 2)) & 1;
  const bool inverse = negative != fold, sign = negative != a.sign;
  const u64 r = x & low_mask(kBits - 2);
  const u64 f = fold ? (u64{1} << (kBits - 2)) - r : r;
  if (f == 0 && !small)
    return inverse ? float_infinity(kFloat32, sign) : float_zero(kFloat32, sign);
  const int k = std::bit_width(f) - 1;
  const int e = small ? a.exponent : k - kBits;
  const u64 d = small ? a.mantissa << 5 : (f << (kBits - 2 - k)) >> 7;  // in [2^28, 2^29)
  const u64 y = static_cast<u64>(clear_spline(kTangent, (u64{inverse} << 28) | (f - fold) >> 7));
  const u64 q = inverse ? static_cast<u64>(clear_spline(kReciprocal, d - (u64{1} << 28))) : d;
  return clear_round_result(sign, inverse ? -e - 3 : e + 1, (q * y) >> 28);
}

// The protocol.
FloatShares tan_pi_of(functions::Evaluator& evaluator, const FloatShares& a);

}  // namespace privml::floating
