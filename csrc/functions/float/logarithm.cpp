// SPDX-License-Identifier: Apache-2.0
#include "functions/float/logarithm.h"

#include "functions/float/reduction.h"

namespace privml {
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

FloatShares logarithm_steps(Evaluator& evaluator, const LogarithmBase& base, const FloatShares& a) {
  const i64 n = evaluator.n;
  const TermWord w = term_word(base);
  const std::vector<u64> table = term_table(base, w);
  const WordTable tables[] = {{table, w.bits()}};
  RingShares terms = lookup_words(evaluator, tables, a.exponent, 8)[0];
  const BitShares one = bit_at(evaluator, terms, w.one_at());
  const BitShares near_half = bit_at(evaluator, terms, w.half_at());

  // Removes the leading one; zeros have none. An additive share of a top bit is also an XOR share.
  const BitShares leading = evaluator.negated(a.zero);
  const RingShares fraction =
      evaluator.map(n, 24, [&](i64 i) { return a.mantissa[i] + (u64{leading[i]} << 23); });
  const RingShares low = evaluator.map(n, 23, [&](i64 i) { return fraction[i]; });
  const BitShares power = evaluator.equal_zero(low, 23);
  const BitShares both = evaluator.and_bits(joined(near_half, one), joined(power, power));
  const BitShares half = part_of(both, n, 0), zero = part_of(both, n, 1);
  const BitShares below =
      evaluator.map_bits(n, [&](i64 i) { return static_cast<u8>(near_half[i] ^ half[i]); });
  const BitShares whole =
      evaluator.map_bits(n, [&](i64 i) { return static_cast<u8>(below[i] ^ one[i]); });
  // a = 1/2 is N = -1 with its term after all.
  const u64 half_term = pack(base.terms[255], w) ^ pack({0, base.whole, 0}, w);
  evaluator.local(n, [&](i64 i) { terms[i] ^= half_term & (u64{0} - half[i]); });

  const u64 unit = evaluator.constant(u64{1} << 23);
  const RingShares change = evaluator.map(n, 24, [&](i64 i) { return unit - 2 * fraction[i]; });
  const Selected changed = evaluator.select({{below, change, 1, 24}}, {{below, kExponentBits}});
  const RingShares t =
      evaluator.map(n, 24, [&](i64 i) { return fraction[i] + changed.selections[0][i]; });

  const NormalizedMantissa d = normalize_mantissa(evaluator, t, 23, 24);
  const u64 places = evaluator.constant(base.natural ? 25 : 24);
  RingShares changes = evaluator.ring(2 * n);
  evaluator.local(n, [&](i64 i) {
    changes[2 * i] = d.mantissa[i] - t[i];
    changes[2 * i + 1] = d.place[i] - places - (base.natural ? 0 : changed.conversions[0][i]);
  });
  const RingShares chosen = evaluator.select(whole, changes, 24);
  const RingShares factor = evaluator.map(n, 24, [&](i64 i) { return t[i] + chosen[2 * i]; });
  const RingShares index =
      evaluator.map(n, 24, [&](i64 i) { return t[i] + (u64{below[i]} << 23); });
  const RingShares y = spline(evaluator, base.ratio, index);

  const int sum_bits = base.scale + 9;
  const RingShares product = multiply_and_cut(evaluator, factor, {24, false, true}, y,
                                              {kSplineBits, false, true}, kResultBits, 22);
  const LinearShape shape{
      {w.constant_bits, false}, w.constant_shift, {w.factor_bits, true}, sum_bits};
  const RingShares sum =
      evaluator.linear_words(shape, field_at(evaluator, terms, 0, w.constant_bits),
                             field_at(evaluator, terms, w.factor_at(), w.factor_bits),
                             evaluator.extend_nonnegative(product, kResultBits, sum_bits));
  const RingShares v = evaluator.truncate_reduce(sum, sum_bits, base.scale - 22);
  const RingShares term_exponent =
      evaluator.word_to_ring(field_at(evaluator, terms, w.exponent_at(), TermWord::kExponent),
                             {TermWord::kExponent}, kExponentBits);
  const u64 offset = evaluator.constant(kExponentOffset);
  const RingShares e = evaluator.map(
      n, kExponentBits, [&](i64 i) { return chosen[2 * i + 1] + term_exponent[i] - offset; });
  FloatShares out = finish_result(evaluator, round_result(evaluator, e, v), zero);
  out.sign = bit_at(evaluator, terms, w.negative_at());
  return out;
}

}  // namespace

FloatShares log2_of(Evaluator& evaluator, const FloatShares& a) {
  return logarithm_steps(evaluator, kBaseTwo, a);
}
FloatShares log_of(Evaluator& evaluator, const FloatShares& a) {
  return logarithm_steps(evaluator, kBaseE, a);
}

void float_log2(Party& party, FloatView a, FloatSpan out) { run_function(party, a, out, log2_of); }
void cost_float_log2(CostMeter& meter, i64 n) { cost_function(meter, n, log2_of); }
void float_log(Party& party, FloatView a, FloatSpan out) { run_function(party, a, out, log_of); }
void cost_float_log(CostMeter& meter, i64 n) { cost_function(meter, n, log_of); }

}  // namespace privml
