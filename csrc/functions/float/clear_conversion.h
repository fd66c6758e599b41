// SPDX-License-Identifier: Apache-2.0
// Conversions of floating-point numbers in the clear, bit for bit as the protocols compute them:
// to integers, from and to fixed point, to other formats, and those of dot.h. See clear.h.
#pragma once

#include <algorithm>

#include "functions/float/clear_rounding.h"

namespace privml::floating {

// To the nearest integer, ties to even; the sign stays on zeros.
constexpr FloatValue clear_float_round_to_integer(FloatValue a, FloatFormat f) {
  const int q = f.mantissa;
  if (a.zero || a.exponent < -1) return float_zero(f, a.sign);
  if (a.exponent >= q) return a;
  const u64 m = shift_rounded(a.mantissa, q - a.exponent);
  if (m == 0) return float_zero(f, a.sign);
  const int k = top_bit(m);
  return {false, a.sign, k, m << (q - k)};
}

// x / 2^scale, x signed; zero is +0.
constexpr FloatValue clear_float_from_fixed(i64 x, int scale, FloatFormat f) {
  if (x == 0) return float_zero(f);
  const u64 magnitude = x < 0 ? -static_cast<u64>(x) : static_cast<u64>(x);
  const int k = top_bit(magnitude);
  return clear_float_check(
      round_mantissa<u64>(false, x < 0, k - scale, magnitude, k + 1, f.mantissa), f);
}

// a * 2^scale to the nearest integer, ties to even, at the ends of `bits` bits if it is beyond.
constexpr i64 clear_float_to_fixed(FloatValue a, FloatFormat f, int bits, int scale) {
  const int e = a.exponent + scale;
  if (a.zero || e < -1) return 0;
  const u64 end = u64{1} << (bits - 1);
  const auto stopped = [&](u64 magnitude) {
    if (a.sign) return static_cast<i64>(u64{0} - std::min(magnitude, end));
    return static_cast<i64>(std::min(magnitude, end - 1));
  };
  if (e >= bits - 1) return stopped(end);
  const int q = f.mantissa;
  return stopped(e >= q ? a.mantissa << (e - q) : shift_rounded(a.mantissa, q - e));
}

// To another format: rounded, then checked. An infinity is cast as the number that it counts as.
constexpr FloatValue clear_float_cast(FloatValue a, FloatFormat from, FloatFormat to) {
  return clear_float_check(clear_float_round(a, from.mantissa, to), to);
}

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

}  // namespace privml::floating
