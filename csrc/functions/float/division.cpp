// SPDX-License-Identifier: Apache-2.0
#include "functions/float/division.h"

#include "functions/float/quotient.h"

namespace privml::floating {
namespace {

constexpr int kMostMantissa = 27;

// m1 or 2 m1, not below m2.
struct Numerator {
  functions::RingShares mantissa;  // in Z_{2^bits}
  int bits;
  functions::BitShares doubled;
};

// Both mantissas have their top bits set, so that the difference fits q + 1 bits. Division by zero
// doubles; the exponent relies on that.
Numerator numerator(functions::Evaluator& evaluator, const FloatShares& a, const FloatShares& b,
                    FloatFormat f) {
  const int q = f.mantissa, bits = q <= kOneTableMantissa ? 2 * q + 5 : q + 3;
  const functions::RingShares wide = evaluator.extend_known_msb(a.mantissa, q + 1, 1, bits);
  Numerator out{
      {},
      bits,
      evaluator.most_significant_bit(
          evaluator.map(evaluator.n, q + 1, [&](i64 i) { return a.mantissa[i] - b.mantissa[i]; }),
          q + 1)};
  const functions::RingShares added = evaluator.select(out.doubled, wide, bits);
  out.mantissa = evaluator.map(evaluator.n, bits, [&](i64 i) { return wide[i] + added[i]; });
  return out;
}

// m' of approximate_quotient() in q + 2 bits.
functions::RingShares quotient_by_table(functions::Evaluator& evaluator, const Numerator& m1,
                                        const functions::RingShares& m2, int q) {
  std::vector<u64> table(u64{1} << q);
  for (u64 h = 0; h < table.size(); ++h) table[h] = (u64{1} << (2 * q + 3)) / (table.size() + h);
  const functions::RingShares index = evaluator.map(evaluator.n, q, [&](i64 i) { return m2[i]; });
  const functions::RingShares inverse = evaluator.lookup_xor(table, index, q, q + 4);
  const functions::RingShares product =
      evaluator.multiply_word(inverse, q + 4, m1.mantissa, m1.bits);
  return evaluator.truncate_reduce(product, m1.bits, q + 3);
}

functions::RingShares quotient_by_chords(functions::Evaluator& evaluator, const Numerator& m1,
                                         const functions::RingShares& m2, int q) {
  const auto [g, s, offset] = quotient_plan(q);
  std::vector<u64> table(u64{1} << g);
  for (u64 h = 0; h < table.size(); ++h) {
    const Chord chord = reciprocal_chord(q, h);
    table[h] = chord.start | chord.slope << (s + 1);
  }
  const i64 n = evaluator.n;
  const functions::Evaluator::Split parts =
      evaluator.split_number(m2, q + 1, offset, s + 1 + offset);
  const functions::RingShares index = evaluator.map(n, g, [&](i64 i) { return parts.high[i]; });
  const functions::RingShares inverse = chord_value(evaluator, table, index, g, parts.low, q);
  twopc::FactorFormat inverse_format{s + 1, false}, m1_format{m1.bits, false},
      m2_format{q + 1, false};
  inverse_format.nonnegative = m1_format.nonnegative = m2_format.negative = true;
  const int drop = s - 4, a_bits = q + 6, epsilon_bits = q - 2 * g + 5;
  const functions::RingShares a = evaluator.truncate_reduce(
      evaluator.multiply(m1.mantissa, m1_format, inverse, inverse_format, a_bits + drop),
      a_bits + drop, drop);
  const int small = epsilon_bits + drop;
  const functions::RingShares product =
      evaluator.multiply(m2, m2_format, inverse, inverse_format, small);
  const u64 one = evaluator.constant(u64{1} << (q + s));
  const functions::RingShares epsilon = evaluator.truncate_reduce(
      evaluator.map(n, small, [&](i64 i) { return one - product[i]; }), small, drop);
  return refine(evaluator, a, epsilon, {a_bits, epsilon_bits, q + 4, q + 8, q + 2});
}

// [2^(q+1) m1 > (2 m' + 1) m2].
functions::BitShares one_more(functions::Evaluator& evaluator, const Numerator& m1,
                              const functions::RingShares& m2,
                              const functions::RingShares& quotient, int q) {
  const functions::RingShares wide = evaluator.extend_known_msb(m2, q + 1, 1, q + 3);
  const twopc::FactorFormat factor{q + 2, false};
  const functions::RingShares product = evaluator.multiply(quotient, factor, wide, factor, q + 2);
  return evaluator.most_significant_bit(
      evaluator.map(evaluator.n, q + 3,
                    [&](i64 i) { return 2 * product[i] + wide[i] - (m1.mantissa[i] << (q + 1)); }),
      q + 3);
}

}  // namespace

FloatShares divide_floats(functions::Evaluator& evaluator, const FloatShares& a,
                          const FloatShares& b, FloatFormat f) {
  const i64 n = evaluator.n;
  const int q = f.mantissa, width = f.exponent_bits();
  const Numerator m1 = numerator(evaluator, a, b, f);
  functions::RingShares mantissa = q <= kOneTableMantissa
                                       ? quotient_by_table(evaluator, m1, b.mantissa, q)
                                       : quotient_by_chords(evaluator, m1, b.mantissa, q);
  // A quotient by zero gets an exponent that overflows, except 0 / 0.
  const functions::BitShares infinite =
      evaluator.map_bits(n, [&](i64 i) { return a.zero[i] ^ b.zero[i]; });
  const functions::BitShares more = one_more(evaluator, m1, b.mantissa, mantissa, q);
  const functions::Selected rings =
      evaluator.select({}, {{m1.doubled, width}, {infinite, width}, {more, q + 1}});
  evaluator.local(n, [&](i64 i) { mantissa[i] += rings.conversions[2][i]; });
  const u64 large = static_cast<u64>(f.greatest() + 1);
  FloatShares out{a.zero, evaluator.map_bits(n, [&](i64 i) { return a.sign[i] ^ b.sign[i]; }),
                  evaluator.ring(n), evaluator.map(n, q + 1, [&](i64 i) { return mantissa[i]; })};
  out.exponent = evaluator.map(n, width, [&](i64 i) {
    return a.exponent[i] - b.exponent[i] - rings.conversions[0][i] +
           large * rings.conversions[1][i];
  });
  return check_float(evaluator, out, f);
}

FloatBinary float_divide(FloatFormat f) {
  expect_float_format(f, kMostMantissa);
  return {{f, f}, with(divide_floats, f)};
}

}  // namespace privml::floating
