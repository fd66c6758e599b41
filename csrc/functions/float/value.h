// SPDX-License-Identifier: Apache-2.0
// One floating-point number in the clear, and its conversions.
#pragma once

#include <bit>
#include <cmath>

#include "functions/float/format.h"

namespace privml::floating {

struct FloatValue {
  bool zero = true;
  bool sign = false;
  int exponent = 0;
  u64 mantissa = 0;
  friend bool operator==(FloatValue, FloatValue) = default;
};

constexpr FloatValue float_zero(FloatFormat f, bool sign = false) {
  return {true, sign, static_cast<int>(f.least()) - 1, 0};
}

constexpr FloatValue float_infinity(FloatFormat f, bool sign = false) {
  return {false, sign, static_cast<int>(f.greatest()) + 1, u64{1} << f.mantissa};
}

constexpr bool is_infinity(FloatValue a, FloatFormat f) { return a.exponent > f.greatest(); }

// Element i of clear arrays.
inline FloatValue load_value(FloatView a, FloatFormat f, i64 i) {
  return {a.zero[i] != 0, a.sign[i] != 0,
          static_cast<int>(to_signed(a.exponent[i], f.exponent_bits())), a.mantissa[i]};
}

inline void store_value(FloatValue v, FloatFormat f, FloatSpan out, i64 i) {
  out.zero[i] = v.zero;
  out.sign[i] = v.sign;
  out.exponent[i] = static_cast<u64>(static_cast<i64>(v.exponent)) & low_mask(f.exponent_bits());
  out.mantissa[i] = v.mantissa;
}

// The word of word.h, clear.
constexpr FloatValue value_from_word(u64 word, FloatFormat f) {
  const int e = f.mantissa_bits(), s = e + f.exponent_bits();
  const u64 biased = (word >> e) & low_mask(f.exponent_bits());
  const u64 exponent = biased - static_cast<u64>(f.greatest());
  return {((word >> (s + 1)) & 1) == 0, ((word >> s) & 1) != 0,
          static_cast<int>(to_signed(exponent, f.exponent_bits())), word & low_mask(e)};
}

constexpr u64 word_from_value(FloatValue v, FloatFormat f) {
  const int e = f.mantissa_bits(), s = e + f.exponent_bits();
  const u64 biased = static_cast<u64>(v.exponent + f.greatest()) & low_mask(f.exponent_bits());
  return (v.mantissa & low_mask(e)) | biased << e | u64{v.sign} << s | u64{!v.zero} << (s + 1);
}

// Between IEEE single precision and kFloat32: denormals become zeros, NaNs infinities.
constexpr FloatValue value_from_single_bits(u32 bits) {
  const bool sign = bits >> 31;
  const int exponent = (bits >> 23) & 255;
  if (exponent == 0) return float_zero(kFloat32, sign);
  if (exponent == 255) return float_infinity(kFloat32, sign);
  return {false, sign, exponent - 127, u64{bits & 0x7fffff} | 0x800000};
}

constexpr u32 single_bits_from_value(FloatValue v) {
  const u32 sign = u32{v.sign} << 31;
  if (v.zero) return sign;
  return sign | static_cast<u32>(v.exponent + 127) << 23 | (v.mantissa & 0x7fffff);
}

// Exact if q <= 52 and the exponent is a double's.
inline double double_from_value(FloatValue v, FloatFormat f) {
  if (v.zero) return v.sign ? -0.0 : 0.0;
  const double magnitude = std::ldexp(static_cast<double>(v.mantissa), v.exponent - f.mantissa);
  return v.sign ? -magnitude : magnitude;
}

}  // namespace privml::floating
