// SPDX-License-Identifier: Apache-2.0
// The reciprocal of a square root.
//
// Functionality  1 / sqrt |a| in float32, error below one unit in the last place for every float32
//                (make prove-secfloat); infinity at 0.
// Method         |a| = m 2^o 4^k, o in {0, 1}: 2^-k times a polynomial of the cell of (o, m).
// Leakage        none beyond length. Assumption: correlated OT, correlation-robust hash.
// Cost           a lookup at the exponent, spline.h, result.h.
#pragma once

#include "functions/float/result.h"
#include "functions/float/tables.h"

namespace privml::floating {

// Exponent of the result, of mantissas 1 to 2 the next one.
constexpr int root_exponent(int exponent) { return -1 - (exponent >> 1); }

inline FloatValue clear_float_rsqrt(FloatValue a) {
  const u64 fraction = a.mantissa & low_mask(23);
  if (a.zero) return float_infinity(kFloat32);
  const u64 odd = static_cast<u64>(a.exponent & 1);
  const u64 v = static_cast<u64>(clear_spline(kInverseRoot, odd << 23 | fraction));
  return clear_round_result(false, root_exponent(a.exponent), v);
}

// The protocol.
FloatShares rsqrt_of(functions::Evaluator& evaluator, const FloatShares& a);

}  // namespace privml::floating
