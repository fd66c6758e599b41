// SPDX-License-Identifier: Apache-2.0
// Logarithms.
//
// Functionality  log2 |a| and ln |a| in float32, error below one unit in the last place for every
//                positive float32 (make prove-secfloat); minus infinity at 0, infinity at infinity.
//                The sign of a is ignored.
// Method         |a| = m 2^N. For N = -1, m > 1 the result is log(1 - d), d = 1 - m / 2, otherwise
//                N + log(1 + d), d = m - 1. log(1 +- d) = +-d L(d), L a polynomial of cells. If the
//                term of N is 0, d is normalised first, so that the result keeps its precision
//                near a = 1; otherwise N fixes the scale of the sum N + d L(d).
// Leakage        none beyond length. Assumption: correlated OT, correlation-robust hash.
// Source         SecFloat (Rathee et al., S&P 2022), Figure 8 and equation 2, in fixed point.
#pragma once

#include <array>

#include "functions/float/format.h"
#include "functions/float/result.h"
#include "functions/float/tables.h"

namespace privml::floating {

// What depends only on the exponent N: |N log 2|, and the factor of d L(d), in a scale in which
// their sum lies in [1, 4) times 2^(LogarithmBase::scale + 6).
struct LogarithmTerm {
  u64 constant;
  int factor;
  int exponent;
};

struct LogarithmBase {
  bool natural;
  Spline ratio;                          // L, scale 28, 29 for positive logarithms of base e
  int scale;                             // fraction bits of d L(d)
  int whole;                             // the factor if the term of N is 0
  std::array<LogarithmTerm, 256> terms;  // by N mod 256
};

constexpr LogarithmTerm logarithm_term(int n, bool natural, int scale) {
  constexpr u64 kLnOfTwo = 3121657384082680;  // scale 52
  constexpr int kScale = 52;
  const u64 unit = natural ? kLnOfTwo : u64{1} << kScale;
  const u64 size = static_cast<u64>(n < 0 ? -n : n);
  if (n == 0) return {0, 0, 0};
  // 0 and infinity: 1 * 2^128.
  if (n < -126 || n > 127) return {u64{1} << (scale + 6), 0, 128};
  // Results lie in [|N|, |N| + 1] log 2, for negative N in [|N| - 1, |N|] log 2.
  const u64 least = n < -1 ? size - 1 : size;
  const int exponent = static_cast<int>(std::bit_width(least * unit)) - 1 - kScale;
  const int up = 6 - exponent, drop = kScale - scale - up;
  return {(size * unit + (u64{1} << (drop - 1))) >> drop, n < 0 ? -(1 << up) : 1 << up, exponent};
}

constexpr LogarithmBase make_logarithm_base(bool natural) {
  LogarithmBase base{
      natural, natural ? kLogarithm : kLogarithmOfTwo, natural ? 30 : 29, natural ? 256 : 128, {}};
  for (int i = 0; i < 256; ++i)
    base.terms[i] = logarithm_term(i < 128 ? i : i - 256, natural, base.scale);
  return base;
}

inline constexpr LogarithmBase kBaseTwo = make_logarithm_base(false);
inline constexpr LogarithmBase kBaseE = make_logarithm_base(true);

inline FloatValue clear_logarithm(const LogarithmBase& base, FloatValue a) {
  const u64 fraction = a.zero ? 0 : a.mantissa - (u64{1} << 23);
  const bool below = a.exponent == -1 && fraction != 0, whole = below || a.exponent == 0;
  const u64 t = below ? (u64{1} << 23) - fraction : fraction;
  if (whole && t == 0) return float_zero(kFloat32);  // a = 1
  const int k = std::bit_width(t) - 1;
  const u64 d = whole ? t << (22 - k) : t;
  const u64 y = static_cast<u64>(clear_spline(base.ratio, u64{below} << 23 | t));
  const i64 product = static_cast<i64>((d * y) >> 22);
  LogarithmTerm term = base.terms[static_cast<u8>(a.exponent)];
  if (whole) term = {0, base.whole, k - 23 - (below || base.natural)};
  const u64 sum = term.constant + static_cast<u64>(term.factor * product);
  return clear_round_result(a.exponent < 0, term.exponent, sum >> (base.scale - 22));
}

inline FloatValue clear_float_log2(FloatValue a) { return clear_logarithm(kBaseTwo, a); }
inline FloatValue clear_float_log(FloatValue a) { return clear_logarithm(kBaseE, a); }

// The protocols.
FloatShares log2_of(functions::Evaluator& evaluator, const FloatShares& a);
FloatShares log_of(functions::Evaluator& evaluator, const FloatShares& a);

}  // namespace privml::floating
