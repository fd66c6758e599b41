// SPDX-License-Identifier: Apache-2.0
// The operations of dot.h in the clear, bit for bit as the protocols compute them.
#pragma once

#include "functions/float/clear_conversion.h"

namespace privml {

// v / 2^top in units of 2^-(q + guard), towards zero; shift = top - v.exponent >= 0.
constexpr i64 clear_float_align(FloatValue v, i64 shift, FloatFormat f, int guard) {
  if (v.zero || shift > f.mantissa + guard) return 0;
  const i64 magnitude = static_cast<i64>((v.mantissa << guard) >> shift);
  return v.sign ? -magnitude : magnitude;
}

// sum * 2^(exponent - fraction), rounded to nearest, ties to even; |sum| < 2^63.
constexpr FloatValue clear_float_from_sum(i64 sum, i64 exponent, FloatFormat f, int fraction) {
  return clear_float_from_fixed(sum, fraction - static_cast<int>(exponent), f);
}

}  // namespace privml
