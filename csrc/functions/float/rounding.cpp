// SPDX-License-Identifier: Apache-2.0
#include "functions/float/rounding.h"

namespace privml::floating {
namespace {

// The shares' part above the cut, and the bit that completes it, of the complement x~ of x':
// x' >> s = -1 - (x~_0 >> s) - (x~_1 >> s) - bit. The bit is the carry, or 1 for a tie that would
// round to an odd number.
functions::BitShares rounding_bit(functions::Evaluator& evaluator,
                                  const functions::RingShares& complement, int s,
                                  const functions::Carries& carries) {
  const i64 n = complement.count;
  const functions::BitShares odd = evaluator.negated(
      evaluator.map_bits(n, [&](i64 i) { return (complement[i] >> s) ^ carries.low[i]; }));
  functions::BitShares bit = evaluator.and_bits(carries.low_ones, odd);
  evaluator.local(n, [&](i64 i) { bit[i] ^= carries.low[i]; });
  return bit;
}

}  // namespace

functions::RingShares complement(const functions::Evaluator& evaluator,
                                 const functions::RingShares& x, u64 added, int bits) {
  const bool first = evaluator.first();
  return evaluator.map(x.count, bits,
                       [&](i64 i) { return first ? ~(x[i] + added) : u64{0} - x[i]; });
}

functions::RingShares round_shift(functions::Evaluator& evaluator, const functions::RingShares& x,
                                  int bits, int s) {
  const functions::RingShares c = complement(evaluator, x, u64{1} << (s - 1), bits);
  functions::Carries carries = evaluator.carries(c, s, 0, true);
  carries.low = carries.all;
  const functions::RingShares bit =
      evaluator.to_ring(rounding_bit(evaluator, c, s, carries), bits - s);
  const u64 minus_one = evaluator.constant(~u64{0});
  return evaluator.map(x.count, bits - s, [&](i64 i) { return minus_one - (c[i] >> s) - bit[i]; });
}

functions::RingShares truncate_sticky(functions::Evaluator& evaluator,
                                      const functions::RingShares& x, int bits, int s) {
  const functions::RingShares c = complement(evaluator, x, 0, bits);
  functions::Carries carries = evaluator.carries(c, s, 0, true);
  carries.low = carries.all;
  const i64 n = x.count;
  // v = something cut off and the lowest bit clear; the complement's lowest bit is set then.
  const functions::BitShares even =
      evaluator.map_bits(n, [&](i64 i) { return (c[i] >> s) ^ carries.low[i]; });
  const functions::BitShares v = evaluator.and_bits(evaluator.negated(carries.low_ones), even);
  const functions::Selected rings = evaluator.select({}, {{carries.low, bits - s}, {v, bits - s}});
  const u64 minus_one = evaluator.constant(~u64{0});
  return evaluator.map(n, bits - s, [&](i64 i) {
    return minus_one - (c[i] >> s) - rings.conversions[0][i] + rings.conversions[1][i];
  });
}

RoundedShares round_mantissa_shares(functions::Evaluator& evaluator, const functions::RingShares& x,
                                    int bits, int q, int carry_width) {
  const int s = bits - 1 - q;
  const i64 n = x.count;
  const functions::RingShares c = complement(evaluator, x, u64{1} << (s - 1), bits);
  const functions::Carries carries = evaluator.carries(c, bits - 1, s, true);
  // The top bit of x' is clear exactly if the half unit made it wrap.
  const functions::BitShares carry =
      evaluator.map_bits(n, [&](i64 i) { return (c[i] >> (bits - 1)) ^ carries.all[i]; });
  const functions::BitShares lacking = rounding_bit(evaluator, c, s, carries);
  std::vector<functions::Conversion> conversions{{lacking, q + 1}};
  if (carry_width > 0) conversions.push_back({carry, carry_width});
  functions::Selected rings = evaluator.select({}, conversions);
  const functions::RingShares& bit = rings.conversions[0];
  const u64 minus_one = evaluator.constant(~u64{0});
  functions::RingShares mantissa = evaluator.map(
      n, q + 1, [&](i64 i) { return minus_one - (c[i] >> s) - bit[i] + (u64{carry[i]} << q); });
  RoundedShares out{std::move(mantissa), carry, {}};
  if (carry_width > 0) out.carry_ring = std::move(rings.conversions[1]);
  return out;
}

functions::RingShares interleaved(const functions::Evaluator& evaluator,
                                  const functions::RingShares& mantissa,
                                  const functions::RingShares& exponent) {
  functions::RingShares out = evaluator.ring(2 * mantissa.count);
  evaluator.local(mantissa.count, [&](i64 i) {
    out[2 * i] = mantissa[i];
    out[2 * i + 1] = exponent[i];
  });
  return out;
}

int pair_width(FloatFormat f) { return std::max(f.exponent_bits(), f.mantissa_bits()); }

functions::RingShares mantissas_of(const functions::Evaluator& evaluator,
                                   const functions::RingShares& pairs, FloatFormat f) {
  return evaluator.map(pairs.count / 2, f.mantissa_bits(), [&](i64 i) { return pairs[2 * i]; });
}

functions::RingShares exponents_of(const functions::Evaluator& evaluator,
                                   const functions::RingShares& pairs, FloatFormat f) {
  return evaluator.map(pairs.count / 2, f.exponent_bits(), [&](i64 i) { return pairs[2 * i + 1]; });
}

FloatShares check_float(functions::Evaluator& evaluator, const FloatShares& a, FloatFormat f) {
  return check_float(evaluator, a, f, f.exponent_bits());
}

FloatShares check_float(functions::Evaluator& evaluator, const FloatShares& a, FloatFormat f,
                        int width) {
  const i64 n = a.exponent.count;
  const int short_width = f.exponent_bits();
  const u64 least = evaluator.constant(static_cast<u64>(f.least()));
  const u64 greatest = evaluator.constant(static_cast<u64>(f.greatest()));
  const functions::RingShares differences =
      functions::joined(evaluator.map(n, width, [&](i64 i) { return a.exponent[i] - least; }),
                        evaluator.map(n, width, [&](i64 i) { return greatest - a.exponent[i]; }));
  const functions::BitShares outside = evaluator.most_significant_bit(differences, width);
  const functions::BitShares under = functions::part_of(outside, n, 0),
                             over = functions::part_of(outside, n, 1);
  const functions::BitShares zero = evaluator.or_bits(a.zero, under);
  const functions::BitShares keep =
      evaluator.negated(evaluator.map_bits(n, [&](i64 i) { return zero[i] ^ over[i]; }));
  const u64 base = static_cast<u64>(f.least() - 1);
  const u64 own_base = evaluator.constant(base);
  const functions::RingShares pairs =
      interleaved(evaluator, a.mantissa,
                  evaluator.map(n, short_width, [&](i64 i) { return a.exponent[i] - own_base; }));
  const functions::Selected kept =
      evaluator.select({{keep, pairs, 2, pair_width(f)}}, {{over, short_width}});
  const u64 span = static_cast<u64>(f.greatest() + 1) - base;
  FloatShares out{zero, a.sign, evaluator.ring(n), evaluator.ring(n)};
  out.exponent = exponents_of(evaluator, kept.selections[0], f);
  out.mantissa = mantissas_of(evaluator, kept.selections[0], f);
  evaluator.local(n, [&](i64 i) {
    const u64 exponent = out.exponent[i] + own_base + span * kept.conversions[0][i];
    out.exponent[i] = exponent & low_mask(short_width);
    out.mantissa[i] =
        (out.mantissa[i] + (u64{over[i]} << f.mantissa)) & low_mask(f.mantissa_bits());
  });
  return out;
}

}  // namespace privml::floating
