// SPDX-License-Identifier: Apache-2.0
#include "functions/float/saturating.h"

namespace privml::floating {
namespace {

constexpr int kExponentBits = kFloat32.exponent_bits();
constexpr int kOffset = 128;  // exponents of results are -128 .. -1
constexpr int kExponentWord = 7;

FloatShares saturating_steps(functions::Evaluator& evaluator, const Saturating& f,
                             const FloatShares& a) {
  const i64 n = evaluator.n;
  const int binade_bits = f.binade_bits(), bits = binade_bits + 23;
  std::vector<u64> table(256);
  for (int i = 0; i < 256; ++i) {
    const int e = i > 128 ? i - 256 : i;
    table[i] = static_cast<u64>(f.result_exponent(e) + kOffset) | static_cast<u64>(f.binade(e))
                                                                      << kExponentWord;
  }
  const WordTable tables[] = {{table, kExponentWord + binade_bits}};
  const functions::RingShares found = lookup_words(evaluator, tables, a.exponent, 8)[0];
  const functions::RingShares binade = evaluator.word_to_ring(
      field_at(evaluator, found, kExponentWord, binade_bits), {binade_bits}, binade_bits);
  // Without its leading one the mantissa has a top bit 0.
  const functions::BitShares leading = evaluator.negated(a.zero);
  const functions::RingShares fraction =
      evaluator.map(n, 24, [&](i64 i) { return a.mantissa[i] + (u64{leading[i]} << 23); });
  const functions::RingShares wide = evaluator.extend_nonnegative(fraction, 24, bits);
  const functions::RingShares x =
      evaluator.map(n, bits, [&](i64 i) { return wide[i] + (binade[i] << 23); });
  const functions::RingShares v = spline(evaluator, f.spline, x);
  const functions::RingShares word = evaluator.word_to_ring(
      field_at(evaluator, found, 0, kExponentWord), {kExponentWord}, kExponentBits);
  const u64 offset = evaluator.constant(kOffset);
  const functions::RingShares e =
      evaluator.map(n, kExponentBits, [&](i64 i) { return word[i] - offset; });
  FloatShares out = finish_result(evaluator, round_result(evaluator, e, v), a.zero);
  out.sign = a.sign;
  return out;
}

}  // namespace

FloatShares tanh_of(functions::Evaluator& evaluator, const FloatShares& a) {
  return saturating_steps(evaluator, kTanh, a);
}
FloatShares erf_of(functions::Evaluator& evaluator, const FloatShares& a) {
  return saturating_steps(evaluator, kErf, a);
}

}  // namespace privml::floating
