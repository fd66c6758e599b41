// SPDX-License-Identifier: Apache-2.0
// For tests and proofs: results of the hardware's arithmetic in the formats of format.h.
#pragma once

#include <cmath>

#include "functions/float/value.h"

namespace privml::floating::testing {

// Rounded with an unbounded exponent, then flushed or saturated. `exact` must be the real result,
// or so close to it (within 2^-53) that the rounding to f does not see the difference.
inline FloatValue round_double(double exact, FloatFormat f) {
  const bool sign = std::signbit(exact);
  if (exact == 0) return float_zero(f, sign);
  if (std::isinf(exact)) return float_infinity(f, sign);
  int e = 0;
  const double fraction = std::frexp(std::fabs(exact), &e);  // in [1/2, 1)
  u64 m = static_cast<u64>(std::nearbyint(std::ldexp(fraction, f.mantissa + 1)));
  --e;
  if (m >> (f.mantissa + 1)) {
    m >>= 1;
    ++e;
  }
  if (e < f.least()) return float_zero(f, sign);
  if (e > f.greatest()) return float_infinity(f, sign);
  return {false, sign, e, m};
}

// All numbers of a small format: both zeros, both infinities and all between.
template <class Body>
void for_all_values(FloatFormat f, Body&& body) {
  for (const bool sign : {false, true}) {
    body(float_zero(f, sign));
    for (i64 e = f.least(); e <= f.greatest(); ++e) {
      for (u64 m = u64{1} << f.mantissa; m >> (f.mantissa + 1) == 0; ++m) {
        body(FloatValue{false, sign, static_cast<int>(e), m});
      }
    }
    body(float_infinity(f, sign));
  }
}

}  // namespace privml::floating::testing
