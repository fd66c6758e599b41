// SPDX-License-Identifier: Apache-2.0
// Odd functions that saturate: the hyperbolic tangent and the error function.
//
// Functionality  tanh a and erf a in float32, error below one unit in the last place for every
//                float32 (make prove-secfloat).
// Method         32 cells in each binade of |a| from 2^-12 to the one where the function reaches 1,
//                a polynomial of the mantissa's low bits in each; below and above there is a binade
//                of cells for all others. The result's exponent follows from that of a alone.
// Leakage        none beyond length. Assumption: correlated OT, correlation-robust hash.
// Cost           a lookup at the exponent, an extension, spline.h with 512 (erf) or 1024 cells of
//                degree 3, result.h and the selection of zeros.
#pragma once

#include <algorithm>

#include "functions/float/result.h"
#include "functions/float/tables.h"

namespace privml::floating {

struct Saturating {
  Spline spline;    // cells: 32 * (binade of |a|, counted from `least` - 1, within the table)
  int least, most;  // binades with cells of their own
  int shift;        // the exponent of results below 1/2 is that of a less this, at most -1

  constexpr int binade(int exponent) const {
    return std::clamp(exponent, least - 1, most + 1) - (least - 1);
  }
  constexpr int result_exponent(int exponent) const { return std::min(exponent - shift, -1); }
  constexpr int binade_bits() const { return spline.index_bits - 5; }
};

inline constexpr Saturating kTanh{kTanhSpline, -12, 3, 1};
inline constexpr Saturating kErf{kErfSpline, -12, 1, 0};

inline FloatValue clear_saturating(const Saturating& f, FloatValue a) {
  if (a.zero) return a;
  const u64 x = static_cast<u64>(f.binade(a.exponent)) << 23 | (a.mantissa & low_mask(23));
  return clear_round_result(a.sign, f.result_exponent(a.exponent),
                            static_cast<u64>(clear_spline(f.spline, x)));
}

inline FloatValue clear_float_tanh(FloatValue a) { return clear_saturating(kTanh, a); }
inline FloatValue clear_float_erf(FloatValue a) { return clear_saturating(kErf, a); }

// The protocols.
FloatShares tanh_of(functions::Evaluator& evaluator, const FloatShares& a);
FloatShares erf_of(functions::Evaluator& evaluator, const FloatShares& a);

}  // namespace privml::floating
