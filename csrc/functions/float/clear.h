// SPDX-License-Identifier: Apache-2.0
// Arithmetic and comparison of floating-point numbers in the clear, bit for bit as the protocols
// compute them; conversions: clear_conversion.h.
//
// Correctly rounded, ties to even, in an unbounded exponent range; then too small becomes zero of
// the same sign and too large infinity. Fast if the format is a constant of the caller.
// Zeros must be canonical except where noted.
#pragma once

#include <utility>

#include "functions/float/clear_rounding.h"
#include "functions/float/quotient.h"

namespace privml::floating {

// No check: for operands and results whose exponents are known to fit; zeros keep mantissa 0 and
// the sum of the exponents.
constexpr FloatValue clear_float_multiply_unchecked(FloatValue a, FloatValue b, FloatFormat f) {
  const int q = f.mantissa, exponent = a.exponent + b.exponent;
  const bool zero = a.zero || b.zero, sign = a.sign != b.sign;
  const auto rounded = [&](auto m) {
    using Word = decltype(m);
    const int bits = (m >> (2 * q + 1)) != 0 ? 2 * q + 2 : 2 * q + 1;
    return round_mantissa<Word>(zero, sign, exponent + (bits == 2 * q + 2), m, bits, q);
  };
  if (2 * q + 2 <= 64) return rounded(a.mantissa * b.mantissa);
  return rounded(u128{a.mantissa} * b.mantissa);
}

constexpr FloatValue clear_float_multiply(FloatValue a, FloatValue b, FloatFormat f) {
  return clear_float_check(clear_float_multiply_unchecked(a, b, f), f);
}

constexpr bool smaller_magnitude(FloatValue a, FloatValue b) {
  return a.exponent < b.exponent || (a.exponent == b.exponent && a.mantissa < b.mantissa);
}

// An exact zero is +0, except for the sum of two negative zeros.
constexpr FloatValue clear_float_add(FloatValue a, FloatValue b, FloatFormat f) {
  const int q = f.mantissa;
  if (smaller_magnitude(a, b)) std::swap(a, b);
  const int d = a.exponent - b.exponent;
  if (d > q + 2) return a;
  const auto added = [&](auto larger) {
    using Word = decltype(larger);
    larger <<= d;
    const Word m = a.sign != b.sign ? larger - b.mantissa : larger + b.mantissa;
    if (m == 0) return float_zero(f, a.sign && b.sign);
    const int k = top_bit(m);
    return clear_float_check(round_mantissa<Word>(false, a.sign, b.exponent + k - q, m, k + 1, q),
                             f);
  };
  if (2 * q + 4 <= 64) return added(a.mantissa);
  return added(u128{a.mantissa});
}

constexpr FloatValue clear_float_negate(FloatValue a) {
  a.sign = !a.sign;
  return a;
}

constexpr FloatValue clear_float_absolute(FloatValue a) {
  a.sign = false;
  return a;
}

constexpr FloatValue clear_float_subtract(FloatValue a, FloatValue b, FloatFormat f) {
  return clear_float_add(a, clear_float_negate(b), f);
}

// Exponent of a / b before the check, [m1 < m2] taken off; x / 0 overflows, 0 / 0 does not.
constexpr int quotient_exponent(FloatValue a, FloatValue b, FloatFormat f) {
  return a.exponent - b.exponent - (a.mantissa < b.mantissa) +
         (b.zero ? static_cast<int>(f.greatest()) : 0);
}

constexpr u64 quotient_numerator(FloatValue a, FloatValue b) {
  return a.mantissa < b.mantissa ? 2 * a.mantissa : a.mantissa;
}

// x / 0 is infinity, 0 / 0 is zero.
constexpr FloatValue clear_float_divide(FloatValue a, FloatValue b, FloatFormat f) {
  u64 m = 0;
  if (!a.zero && !b.zero) {
    const u128 numerator = u128{quotient_numerator(a, b)} << (f.mantissa + 1);
    m = static_cast<u64>((numerator / b.mantissa + 1) >> 1);  // no ties: see quotient.h
  }
  return clear_float_check({a.zero, a.sign != b.sign, quotient_exponent(a, b, f), m}, f);
}

// Of the magnitude: signs of numbers other than zero are ignored.
constexpr FloatValue clear_float_sqrt(FloatValue a, FloatFormat f) {
  if (a.zero) return float_zero(f, a.sign);
  const int odd = a.exponent & 1;
  // Half a unit is never hit: (2y + 1)^2 is odd and 2^(q+2) m even.
  const u64 twice = integer_root(u128{a.mantissa} << (odd + f.mantissa + 2));
  return {false, false, (a.exponent - odd) / 2, (twice + 1) >> 1};
}

constexpr bool clear_float_equal(FloatValue a, FloatValue b) {
  return (a.zero && b.zero) ||
         (a.sign == b.sign && a.exponent == b.exponent && a.mantissa == b.mantissa);
}

constexpr bool clear_float_less_than(FloatValue a, FloatValue b) {
  if (a.zero && b.zero) return false;
  if (a.sign != b.sign) return a.sign;
  return a.sign ? smaller_magnitude(b, a) : smaller_magnitude(a, b);
}

constexpr bool clear_float_less_equal(FloatValue a, FloatValue b) {
  return !clear_float_less_than(b, a);
}

// The first of two zeros.
constexpr FloatValue clear_float_maximum(FloatValue a, FloatValue b) {
  return clear_float_less_than(a, b) ? b : a;
}

constexpr FloatValue clear_float_relu(FloatValue a, FloatFormat f) {
  return a.sign ? float_zero(f) : a;
}

}  // namespace privml::floating
