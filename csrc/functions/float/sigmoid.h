// SPDX-License-Identifier: Apache-2.0
// The logistic function.
//
// Functionality  1 / (1 + e^-a) in float32, error below one unit in the last place for every
//                float32 (make prove-secfloat).
// Method         t = |a| as a fixed-point number. R(t) = 1 / (1 + e^-t) is a polynomial of cells;
//                the result is R(t) for a >= 0 and e^-t R(t) for negative a, so that small
//                results keep their precision.
// Leakage        none beyond length. Assumption: correlated OT, correlation-robust hash.
// Cost           exponential.h's reduction, two splines, their product, result.h.
#pragma once

#include "functions/float/exponential.h"

namespace privml::floating {

inline FloatValue clear_float_sigmoid(FloatValue a) {
  const i64 t = static_cast<i64>(clear_fixed_magnitude(a) >> (kPowerScale - kExponentScale));
  const ReducedExponent r = reduce_exponent(-t, 0);
  const u64 power = static_cast<u64>(clear_spline(kExponential, r.rest));
  const u64 ratio =
      static_cast<u64>(clear_spline(kLogistic, static_cast<u64>(t) >> (kExponentScale - 28)));
  const u64 v = a.sign ? (power * ratio) >> 28 : ratio;
  FloatValue result = clear_round_result(false, a.sign ? r.exponent - 1 : -1, v);
  if (a.exponent > kMostPower) result.exponent = a.sign ? -kBeyond : 0;
  return clear_float_check(result, kFloat32);
}

// The protocol.
FloatShares sigmoid_of(functions::Evaluator& evaluator, const FloatShares& a);

}  // namespace privml::floating
