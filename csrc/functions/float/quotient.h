// SPDX-License-Identifier: Apache-2.0
// How mantissas are divided and square roots taken: widths, tables, and the clear computation.
//
// Quotient     m1 / m2 for 2^q <= m2 < 2^(q+1), m2 <= m1 < 2 m2; the result lies in (Q - 1/2, Q],
//              Q = 2^q m1 / m2, before its floor, so that the rounded quotient is m' or m' + 1.
//              Up to q = 10 one table of 2^(q+3) m2^-1; above it a chord table of 2^g pieces for
//              1 / m2 and one step of Goldschmidt's iteration.
// Square root  sqrt(2^q m) for 2^q <= m < 2^(q+2) likewise, from a chord table of 1 / sqrt.
// Source       in place of the two Newton steps of SecFloat (Rathee et al., S&P 2022), Figure 6.
//              The chord is that of Ito, Takagi, Yajima (IEEE Trans. Computers, 1997).
#pragma once

#include <bit>

#include "functions/float/format.h"

namespace privml::floating {

inline constexpr int kOneTableMantissa = 10;

// Fraction bits of the intermediate values.
struct QuotientPlan {
  int index;    // g: bits of the table's index
  int initial;  // s: of the first approximation
  int offset;   // bits of m below the index
};

constexpr QuotientPlan quotient_plan(int q) {
  const int g = (q + 4) / 4;
  return {g, 2 * g + 5, q - g};
}

// Rounded to nearest.
constexpr u64 divide_rounded(u128 a, u128 b) { return static_cast<u64>((2 * a + b) / (2 * b)); }

struct Chord {
  u64 start, slope;  // fraction bits: s, and s - g
};

// 1 / x on [P, P + 1] / 2^g, P = 2^g + h: start - slope * (x - P / 2^g), with largest errors of
// equal size.
constexpr Chord reciprocal_chord(int q, u64 h) {
  const auto [g, s, offset] = quotient_plan(q);
  const u128 P = (u128{1} << g) + h;
  return {divide_rounded(((8 * P * P - 1) << g) << s, 8 * P * P * P),
          divide_rounded(((u128{1} << (2 * g)) << (s - g)), P * (P + 1))};
}

// The first approximation of 1 / m2, s fraction bits.
constexpr u64 first_reciprocal(int q, u64 m2) {
  const auto [g, s, offset] = quotient_plan(q);
  const Chord chord = reciprocal_chord(q, (m2 >> offset) & low_mask(g));
  return ((chord.start << offset) - chord.slope * (m2 & low_mask(offset))) >> offset;
}

constexpr u64 approximate_quotient(int q, u64 m1, u64 m2) {
  if (m2 == 0) return 0;  // no such mantissa: the caller replaces the result
  if (q <= kOneTableMantissa) {
    return static_cast<u64>((u128{m1} * ((u128{1} << (2 * q + 3)) / m2)) >> (q + 3));
  }
  const int s = quotient_plan(q).initial;
  const u64 r = first_reciprocal(q, m2);
  const i64 drop = s - 4;  // leaves q + 4 fraction bits
  const u64 a = static_cast<u64>((u128{m1} * r) >> drop);
  const __int128 rest = (static_cast<__int128>(1) << (q + s)) - static_cast<__int128>(u128{m2} * r);
  const i64 epsilon = static_cast<i64>(rest >> drop);
  const __int128 sum = (static_cast<__int128>(a) << (q + 4)) + static_cast<__int128>(a) * epsilon;
  return static_cast<u64>(sum >> (q + 8));
}

// floor(sqrt(x)).
constexpr u64 integer_root(u128 x) {
  u64 root = 0;
  const u64 high = static_cast<u64>(x >> 64);
  const int width = high != 0 ? 64 + std::bit_width(high) : std::bit_width(static_cast<u64>(x));
  for (int bit = (width - 1) / 2; bit >= 0; --bit) {
    const u64 next = root | u64{1} << bit;
    if (u128{next} * next <= x) root = next;
  }
  return root;
}

// 1 / sqrt(2^odd x) likewise, on the same pieces.
constexpr Chord root_chord(int q, u64 h, bool odd) {
  const auto [g, s, offset] = quotient_plan(q);
  constexpr int kGuard = 12;  // fraction bits beyond s
  const u64 P = (u64{1} << g) + h;
  const auto inverse_root = [&](u64 at) {
    const u128 square = (u128{1} << (2 * (s + kGuard) + g - (odd ? 1 : 0))) / at;
    return u128{integer_root(square)};
  };
  const u128 left = inverse_root(P), right = inverse_root(P + 1);
  return {divide_rounded(left * (64 * u128{P} * P - 3), (u128{64} << kGuard) * P * P),
          divide_rounded(left - right, u128{1} << kGuard)};
}

// mantissa: m >> odd.
constexpr u64 first_inverse_root(int q, u64 mantissa, bool odd) {
  const auto [g, s, offset] = quotient_plan(q);
  const Chord chord = root_chord(q, (mantissa >> offset) & low_mask(g), odd);
  return ((chord.start << offset) - chord.slope * (mantissa & low_mask(offset))) >> offset;
}

constexpr u64 approximate_root(int q, u64 mantissa, bool odd) {
  const int s = quotient_plan(q).initial;
  const u64 m = mantissa << (odd ? 1 : 0), r = first_inverse_root(q, mantissa, odd);
  const u64 a = static_cast<u64>((u128{m} * r) >> (s - 3));  // q + 3 fraction bits
  const __int128 rest =
      (static_cast<__int128>(1) << (q + 3 + s)) - static_cast<__int128>(u128{a} * r);
  const i64 epsilon = static_cast<i64>(rest >> s);
  const __int128 sum = (static_cast<__int128>(a) << (q + 4)) + static_cast<__int128>(a) * epsilon;
  return static_cast<u64>(sum >> (q + 7));
}

}  // namespace privml::floating
