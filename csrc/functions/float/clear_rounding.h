// SPDX-License-Identifier: Apache-2.0
// Rounding of floating-point numbers in the clear, bit for bit as the protocols do it.
#pragma once

#include "functions/float/value.h"

namespace privml::floating {

// x / 2^shift to the nearest integer, ties to even; 0 <= shift < width of Word.
template <class Word>
constexpr Word shift_rounded(Word x, int shift) {
  if (shift == 0) return x;
  const Word half = Word{1} << (shift - 1);
  const Word low = x & (2 * half - 1), high = x >> shift;
  return high + ((low > half) || (low == half && (high & 1)) ? 1 : 0);
}

constexpr int top_bit(u64 x) { return std::bit_width(x) - 1; }
constexpr int top_bit(u128 x) {
  const u64 high = static_cast<u64>(x >> 64);
  return high != 0 ? 64 + top_bit(high) : top_bit(static_cast<u64>(x));
}

// The end of every operation (FPCheck): overflow to infinity, underflow to zero; any z, e, m.
constexpr FloatValue clear_float_check(FloatValue v, FloatFormat f) {
  if (v.zero || v.exponent < f.least()) return float_zero(f, v.sign);
  if (v.exponent > f.greatest()) return float_infinity(f, v.sign);
  return v;
}

// Mantissa of `bits` bits (top bit set, or 0) with bits - 1 fraction bits, to q (Round*); no check.
template <class Word>
constexpr FloatValue round_mantissa(bool zero, bool sign, int exponent, Word m, int bits, int q) {
  const int shift = bits - 1 - q;
  if (shift <= 0) return {zero, sign, exponent, static_cast<u64>(m) << -shift};
  u64 rounded = static_cast<u64>(shift_rounded(m, shift));
  if (rounded >> (q + 1)) {
    rounded >>= 1;
    ++exponent;
  }
  return {zero, sign, exponent, rounded};
}

// From a format with `from` fraction bits; the exponents keep their range; no check.
constexpr FloatValue clear_float_round(FloatValue v, int from, FloatFormat f) {
  return round_mantissa(v.zero, v.sign, v.exponent, v.mantissa, from + 1, f.mantissa);
}

}  // namespace privml::floating
