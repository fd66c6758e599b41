// SPDX-License-Identifier: Apache-2.0
// The Gaussian error linear unit.
//
// Functionality  a Phi(a) in float32, Phi the normal distribution function; error below one unit in
//                the last place for every float32 (make prove-secfloat).
// Method         t = |a| in fixed point. For a >= 0 and for t < 1/2: |a| Y(t), Y = Phi(a) a
//                polynomial of cells. Else the result is e^(-t^2 / 2) Y(t), Y(t) = t Phi(-t)
//                e^(t^2 / 2): so small results keep their precision. t^2 is taken without the
//                square of its low bits.
// Leakage        none beyond length. Assumption: correlated OT, correlation-robust hash.
// Cost           a reduction, three products for t^2, exponential.h's power, a spline of 1024 cells
//                of degree 3, two products with it, selections, result.h.
#pragma once

#include "functions/float/exponential.h"

namespace privml::floating {

inline constexpr int kLeastGelu = -28, kMostGelu = 3;  // exponents that t depends on; above, t is 0
inline constexpr int kGeluBits = 55;                   // of t with 51 fraction bits
inline constexpr int kSquareSplit = 17;                // low bits of t with 32 fraction bits

inline FloatValue clear_float_gelu(FloatValue a) {
  const bool inside = a.exponent >= kLeastGelu && a.exponent <= kMostGelu;
  const bool large = a.exponent > kMostGelu, tail = a.sign && a.exponent >= -1 && !large;
  const u64 t = inside ? a.mantissa << (a.exponent - kLeastGelu) : 0;
  const u64 high = t >> (19 + kSquareSplit), low = (t >> 19) & low_mask(kSquareSplit);
  const i64 half_square = static_cast<i64>(((high * high << 16) + high * low) >> 11);  // scale 36
  const ReducedExponent r = reduce_exponent(-half_square, 0);
  const u64 power = static_cast<u64>(clear_spline(kExponential, r.rest));
  const u64 y = static_cast<u64>(clear_spline(kGelu, u64{a.sign} << 32 | t >> 23));
  const u64 v = tail ? (power * y) >> 28 : large ? a.mantissa << 6 : (a.mantissa * y) >> 23;
  FloatValue result =
      clear_round_result(a.sign, tail ? r.exponent - 2 : a.exponent - 1 - a.sign, v);
  if (large && a.sign) result.exponent -= kBeyond;
  return clear_float_check(result, kFloat32);
}

// The protocol.
FloatShares gelu_of(functions::Evaluator& evaluator, const FloatShares& a);

}  // namespace privml::floating
