// SPDX-License-Identifier: Apache-2.0
#include "functions/float/division.h"
#include "functions/float/quotient.h"

namespace privml::floating {
namespace {

constexpr int kMostMantissa = 27;

// approximate_root() in q + 3 bits; `mantissa` has its top bit set, `doubled` is the mantissa times
// 1 or 2, by `odd`, in q + 3 bits.
functions::RingShares root_by_chords(functions::Evaluator& evaluator,
                                     const functions::RingShares& mantissa,
                                     const functions::RingShares& doubled,
                                     const functions::BitShares& odd, int q) {
  const auto [g, s, offset] = quotient_plan(q);
  const i64 n = evaluator.n;
  // The part above the cut is 2^g + h: its top bit, which is 1, takes the odd bit.
  std::vector<u64> table(u64{2} << g);
  for (u64 index = 0; index < table.size(); ++index) {
    const Chord chord = root_chord(q, index & low_mask(g), (index >> g) == 0);
    table[index] = chord.start | chord.slope << (s + 1);
  }
  const functions::Evaluator::Split parts =
      evaluator.split_number(mantissa, q + 1, offset, s + 1 + offset);
  const functions::RingShares index =
      evaluator.map(n, g + 1, [&](i64 i) { return parts.high[i] + (u64{odd[i]} << g); });
  const functions::RingShares inverse = chord_value(evaluator, table, index, g + 1, parts.low, q);
  twopc::FactorFormat inverse_format{s + 1, false}, m_format{q + 3, false}, a_format{q + 5, false};
  inverse_format.nonnegative = m_format.nonnegative = a_format.nonnegative = true;
  const int drop = s - 3, a_bits = q + 5, epsilon_bits = q - 2 * g + 5;
  const functions::RingShares a = evaluator.truncate_reduce(
      evaluator.multiply(doubled, m_format, inverse, inverse_format, a_bits + drop), a_bits + drop,
      drop);
  const int small = epsilon_bits + s;
  const functions::RingShares product =
      evaluator.multiply(a, a_format, inverse, inverse_format, small);
  const u64 one = evaluator.constant(u64{1} << (q + 3 + s));
  const functions::RingShares epsilon = evaluator.truncate_reduce(
      evaluator.map(n, small, [&](i64 i) { return one - product[i]; }), small, s);
  return refine(evaluator, a, epsilon, {a_bits, epsilon_bits, q + 4, q + 7, q + 3});
}

}  // namespace

FloatShares sqrt_floats(functions::Evaluator& evaluator, const FloatShares& a, FloatFormat f) {
  const i64 n = evaluator.n;
  const int q = f.mantissa, width = f.exponent_bits();
  const functions::BitShares odd = evaluator.map_bits(n, [&](i64 i) { return a.exponent[i]; });
  const functions::RingShares wide = evaluator.extend_known_msb(a.mantissa, q + 1, 1, q + 3);
  const functions::Selected doubling = evaluator.select({{odd, wide, 1, q + 3}}, {{odd, width}});
  const functions::RingShares doubled =
      evaluator.map(n, q + 3, [&](i64 i) { return wide[i] + doubling.selections[0][i]; });
  const functions::RingShares root = root_by_chords(evaluator, a.mantissa, doubled, odd, q);
  // One more if (2 y + 1)^2 < 2^(q+2) m, that is y^2 + y - 2^q m < 0: within q + 3 bits and
  // sign.
  const functions::RingShares square = evaluator.square(root, q + 3);
  const functions::RingShares remainder =
      evaluator.map(n, q + 3, [&](i64 i) { return square[i] + root[i] - (doubled[i] << q); });
  const functions::BitShares more = evaluator.most_significant_bit(remainder, q + 3);
  const functions::RingShares added = evaluator.to_ring(more, q + 1);
  // e - odd is even: party 1 rounds its half up.
  const u64 up = evaluator.first() ? 0 : 1;
  const functions::RingShares half = evaluator.map(n, width - 1, [&](i64 i) {
    const u64 even = (a.exponent[i] - doubling.conversions[0][i]) & low_mask(width);
    return (even + up) >> 1;
  });
  const functions::RingShares exponent =
      evaluator.extend_bounded(half, width - 1, u64{1} << (f.exponent - 1), width);
  const u64 base = evaluator.constant(static_cast<u64>(f.least() - 1));
  const functions::RingShares pairs =
      interleaved(evaluator, evaluator.map(n, q + 1, [&](i64 i) { return root[i] + added[i]; }),
                  evaluator.map(n, width, [&](i64 i) { return exponent[i] - base; }));
  const functions::RingShares kept =
      evaluator.select(evaluator.negated(a.zero), pairs, pair_width(f));
  FloatShares out{a.zero, evaluator.and_bits(a.zero, a.sign), exponents_of(evaluator, kept, f),
                  mantissas_of(evaluator, kept, f)};
  evaluator.local(n, [&](i64 i) { out.exponent[i] = (out.exponent[i] + base) & low_mask(width); });
  return out;
}

FloatUnary float_sqrt(FloatFormat f) {
  expect_float_format(f, kMostMantissa);
  return {{f}, with(sqrt_floats, f)};
}

}  // namespace privml::floating
