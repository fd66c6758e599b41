// SPDX-License-Identifier: Apache-2.0
// Whole powers with a public exponent.
//
// Functionality  a^exponent for |exponent| <= 64, formats of up to 23 mantissa bits: products by
//                the exponent's bits in a format of 8 more mantissa bits and 2 more exponent bits,
//                rounded once; for negative exponents the quotient of 1 and the power, of 4 more
//                bits, before that. a^0 = 1, 0^-n is infinite.
// Accuracy       (|exponent| - 1) 2^-(q + 9) relatively before the last rounding, for negative
//                exponents 2^-(q + 4) more: below 0.77 and 0.9 units in the last place.
// Leakage        none beyond length, format and exponent. Assumption: correlated OT,
//                correlation-robust hash.
// Cost           two casts, a product per bit of the exponent below its top one and per 1 among
//                these; a cast and a quotient for negative ones.
#pragma once

#include <bit>
#include <cstdlib>

#include "functions/float/clear.h"
#include "functions/float/clear_conversion.h"
#include "functions/float/operation.h"

namespace privml::floating {

inline constexpr int kMostWholePower = 64;

constexpr FloatFormat power_format(FloatFormat f) { return {f.exponent + 2, f.mantissa + 8}; }
constexpr FloatFormat inverse_power_format(FloatFormat f) {
  return {f.exponent + 2, f.mantissa + 4};
}

inline FloatValue clear_float_power(FloatValue a, int exponent, FloatFormat f) {
  if (exponent == 0) return {false, false, 0, u64{1} << f.mantissa};
  const FloatFormat wide = power_format(f);
  const FloatValue x = clear_float_cast(a, f, wide);
  FloatValue r = x;
  const unsigned size = static_cast<unsigned>(std::abs(exponent));
  for (int bit = static_cast<int>(std::bit_width(size)) - 2; bit >= 0; --bit) {
    r = clear_float_multiply(r, r, wide);
    if ((size >> bit) & 1) r = clear_float_multiply(r, x, wide);
  }
  if (exponent > 0) return clear_float_cast(r, wide, f);
  const FloatFormat inverse = inverse_power_format(f);
  const FloatValue one{false, false, 0, u64{1} << inverse.mantissa};
  return clear_float_cast(clear_float_divide(one, clear_float_cast(r, wide, inverse), inverse),
                          inverse, f);
}

// Throws InvalidArgument for exponents and formats beyond those named above.
FloatUnary float_power(int exponent, FloatFormat f);

}  // namespace privml::floating
