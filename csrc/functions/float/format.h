// SPDX-License-Identifier: Apache-2.0
// Floating-point numbers of any width, shared or clear.
//
// A format (p, q) has numbers (zero, sign, exponent, mantissa): (-1)^sign * mantissa / 2^q *
// 2^exponent with 2^q <= mantissa < 2^(q+1), and zeros. Shared: zero and sign as XOR shares,
// exponent in Z_{2^(p+2)} (unbiased, two's complement), mantissa in Z_{2^(q+1)}. Clear numbers
// use the same arrays.
//
// Zero       canonical (1, sign, 1 - 2^(p-1), 0).
// Infinity   (0, sign, 2^(p-1), 2^q). It counts as that number: infinity / 2 is finite.
// Others     there are no NaNs and no denormals.
// Source     SecFloat (Rathee et al., S&P 2022), Figure 1.
#pragma once

#include <span>

#include "base/buffer.h"
#include "base/error.h"
#include "base/types.h"

namespace privml::floating {

struct FloatFormat {
  int exponent = 8;   // p
  int mantissa = 23;  // q
  friend bool operator==(FloatFormat, FloatFormat) = default;

  constexpr int exponent_bits() const { return exponent + 2; }  // of a share
  constexpr int mantissa_bits() const { return mantissa + 1; }
  constexpr i64 least() const { return 2 - (i64{1} << (exponent - 1)); }  // normal exponents
  constexpr i64 greatest() const { return (i64{1} << (exponent - 1)) - 1; }
  constexpr int word_bits() const { return exponent + mantissa + 5; }
};

inline constexpr FloatFormat kFloat32{8, 23};

// Throws InvalidArgument unless 3 <= p <= 15, 2 <= q <= most_mantissa and shifts by up to q + 3 fit
// exponents.
inline void expect_float_format(FloatFormat f, int most_mantissa = 52) {
  expect(f.exponent >= 3 && f.exponent <= 15, "float format: exponent bits must lie in 3..15");
  expect(f.mantissa >= 2 && f.mantissa <= most_mantissa,
         "float format: mantissa bits outside the range of this function");
  expect(f.mantissa + 3 < (1 << f.exponent), "float format: too few exponent bits");
}

// Views of n numbers; all four parts have n elements.
struct FloatView {
  std::span<const u8> zero, sign;
  std::span<const u64> exponent, mantissa;

  i64 size() const { return static_cast<i64>(zero.size()); }
  FloatView part(i64 begin, i64 count) const {
    return {zero.subspan(begin, count), sign.subspan(begin, count), exponent.subspan(begin, count),
            mantissa.subspan(begin, count)};
  }
};

struct FloatSpan {
  std::span<u8> zero, sign;
  std::span<u64> exponent, mantissa;

  i64 size() const { return static_cast<i64>(zero.size()); }
  FloatSpan part(i64 begin, i64 count) const {
    return {zero.subspan(begin, count), sign.subspan(begin, count), exponent.subspan(begin, count),
            mantissa.subspan(begin, count)};
  }
  operator FloatView() const { return {zero, sign, exponent, mantissa}; }
};

struct FloatVector {
  AlignedVector<u8> zero, sign;
  AlignedVector<u64> exponent, mantissa;

  explicit FloatVector(i64 n = 0) : zero(n), sign(n), exponent(n), mantissa(n) {}
  i64 size() const { return static_cast<i64>(zero.size()); }
  FloatSpan span() { return {zero, sign, exponent, mantissa}; }
  FloatView view() const { return {zero, sign, exponent, mantissa}; }
  operator FloatSpan() { return span(); }
  operator FloatView() const { return view(); }
};

}  // namespace privml::floating
