// SPDX-License-Identifier: Apache-2.0
#include "functions/float/logarithm.h"

#include "functions/float/reduction.h"

namespace privml::floating {
namespace {

constexpr int kExponentBits = kFloat32.exponent_bits();
constexpr int kExponentOffset = 1;  // exponents of terms are -1 .. 128

// What one lookup at the exponent gives, from the low end of its word. Terms of base 2 are integers
// at the scale of d L(d).
struct TermWord {
  int constant_bits, constant_shift, factor_bits;

  static constexpr int kExponent = 8;
  int factor_at() const { return constant_bits; }
  int exponent_at() const { return factor_at() + factor_bits; }
  int half_at() const { return exponent_at() + kExponent; }  // [N = -1]
  int one_at() const { return half_at() + 1; }               // [N = 0]
  int negative_at() const { return one_at() + 1; }           // [N < 0]
  int bits() const { return negative_at() + 1; }
};

TermWord term_word(const LogarithmBase& base) {
  const int shift = base.natural ? 0 : base.scale;
  return {base.scale + 8 - shift, shift, base.natural ? 10 : 9};
}

u64 pack(const LogarithmTerm& term, const TermWord& w) {
  return term.constant >> w.constant_shift |
         (static_cast<u64>(static_cast<i64>(term.factor)) & low_mask(w.factor_bits))
             << w.factor_at() |
         static_cast<u64>(term.exponent + kExponentOffset) << w.exponent_at();
}

std::vector<u64> term_table(const LogarithmBase& base, const TermWord& w) {
  std::vector<u64> table(256);
  for (int i = 0; i < 256; ++i) {
    const bool half = i == 255, one = i == 0;
    const LogarithmTerm term = half || one ? LogarithmTerm{0, base.whole, 0} : base.terms[i];
    table[i] = pack(term, w) | u64{half} << w.half_at() | u64{one} << w.one_at() |
               u64{i > 128} << w.negative_at();
  }
  return table;
}

FloatShares logarithm_steps(functions::Evaluator& evaluator, const LogarithmBase& base,
                            const FloatShares& a) {
  const i64 n = evaluator.n;
  const TermWord w = term_word(base);
  const std::vector<u64> table = term_table(base, w);
  const WordTable tables[] = {{table, w.bits()}};
  functions::RingShares terms = lookup_words(evaluator, tables, a.exponent, 8)[0];
  const functions::BitShares one = bit_at(evaluator, terms, w.one_at());
  const functions::BitShares near_half = bit_at(evaluator, terms, w.half_at());

  // Removes the leading one; zeros have none. An additive share of a top bit is also an XOR share.
  const functions::BitShares leading = evaluator.negated(a.zero);
  const functions::RingShares fraction =
      evaluator.map(n, 24, [&](i64 i) { return a.mantissa[i] + (u64{leading[i]} << 23); });
  const functions::RingShares low = evaluator.map(n, 23, [&](i64 i) { return fraction[i]; });
  const functions::BitShares power = evaluator.equal_zero(low, 23);
  const functions::BitShares both =
      evaluator.and_bits(functions::joined(near_half, one), functions::joined(power, power));
  const functions::BitShares half = functions::part_of(both, n, 0),
                             zero = functions::part_of(both, n, 1);
  const functions::BitShares below =
      evaluator.map_bits(n, [&](i64 i) { return static_cast<u8>(near_half[i] ^ half[i]); });
  const functions::BitShares whole =
      evaluator.map_bits(n, [&](i64 i) { return static_cast<u8>(below[i] ^ one[i]); });
  // a = 1/2 is N = -1 with its term after all.
  const u64 half_term = pack(base.terms[255], w) ^ pack({0, base.whole, 0}, w);
  evaluator.local(n, [&](i64 i) { terms[i] ^= half_term & (u64{0} - half[i]); });

  const u64 unit = evaluator.constant(u64{1} << 23);
  const functions::RingShares change =
      evaluator.map(n, 24, [&](i64 i) { return unit - 2 * fraction[i]; });
  const functions::Selected changed =
      evaluator.select({{below, change, 1, 24}}, {{below, kExponentBits}});
  const functions::RingShares t =
      evaluator.map(n, 24, [&](i64 i) { return fraction[i] + changed.selections[0][i]; });

  const NormalizedMantissa d = normalize_mantissa(evaluator, t, 23, 24);
  const u64 places = evaluator.constant(base.natural ? 25 : 24);
  functions::RingShares changes = evaluator.ring(2 * n);
  evaluator.local(n, [&](i64 i) {
    changes[2 * i] = d.mantissa[i] - t[i];
    changes[2 * i + 1] = d.place[i] - places - (base.natural ? 0 : changed.conversions[0][i]);
  });
  const functions::RingShares chosen = evaluator.select(whole, changes, 24);
  const functions::RingShares factor =
      evaluator.map(n, 24, [&](i64 i) { return t[i] + chosen[2 * i]; });
  const functions::RingShares index =
      evaluator.map(n, 24, [&](i64 i) { return t[i] + (u64{below[i]} << 23); });
  const functions::RingShares y = spline(evaluator, base.ratio, index);

  const int sum_bits = base.scale + 9;
  const functions::RingShares product = multiply_and_cut(
      evaluator, factor, {24, false, true}, y, {kSplineBits, false, true}, kResultBits, 22);
  const twopc::LinearShape shape{
      {w.constant_bits, false}, w.constant_shift, {w.factor_bits, true}, sum_bits};
  const functions::RingShares sum =
      evaluator.linear_words(shape, field_at(evaluator, terms, 0, w.constant_bits),
                             field_at(evaluator, terms, w.factor_at(), w.factor_bits),
                             evaluator.extend_nonnegative(product, kResultBits, sum_bits));
  const functions::RingShares v = evaluator.truncate_reduce(sum, sum_bits, base.scale - 22);
  const functions::RingShares term_exponent =
      evaluator.word_to_ring(field_at(evaluator, terms, w.exponent_at(), TermWord::kExponent),
                             {TermWord::kExponent}, kExponentBits);
  const u64 offset = evaluator.constant(kExponentOffset);
  const functions::RingShares e = evaluator.map(
      n, kExponentBits, [&](i64 i) { return chosen[2 * i + 1] + term_exponent[i] - offset; });
  FloatShares out = finish_result(evaluator, round_result(evaluator, e, v), zero);
  out.sign = bit_at(evaluator, terms, w.negative_at());
  return out;
}

}  // namespace

FloatShares log2_of(functions::Evaluator& evaluator, const FloatShares& a) {
  return logarithm_steps(evaluator, kBaseTwo, a);
}
FloatShares log_of(functions::Evaluator& evaluator, const FloatShares& a) {
  return logarithm_steps(evaluator, kBaseE, a);
}

}  // namespace privml::floating
