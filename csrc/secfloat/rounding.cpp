// SPDX-License-Identifier: Apache-2.0
#include "secfloat/rounding.h"

namespace privml {
namespace {

// The shares' part above the cut, and the bit that completes it, of the complement x~ of x':
// x' >> s = -1 - (x~_0 >> s) - (x~_1 >> s) - bit. The bit is the carry, or 1 for a tie that would
// round to an odd number.
BitShares rounding_bit(Steps& steps, const RingShares& complement, int s, const Carries& carries) {
  const i64 n = complement.count;
  const BitShares odd = steps.negated(
      steps.map_bits(n, [&](i64 i) { return (complement[i] >> s) ^ carries.low[i]; }));
  BitShares bit = steps.and_bits(carries.low_ones, odd);
  steps.local(n, [&](i64 i) { bit[i] ^= carries.low[i]; });
  return bit;
}

}  // namespace

RingShares complement(const Steps& steps, const RingShares& x, u64 added, int bits) {
  const bool first = steps.first();
  return steps.map(x.count, bits, [&](i64 i) { return first ? ~(x[i] + added) : u64{0} - x[i]; });
}

RingShares round_shift(Steps& steps, const RingShares& x, int bits, int s) {
  const RingShares c = complement(steps, x, u64{1} << (s - 1), bits);
  Carries carries = steps.carries(c, s, 0, true);
  carries.low = carries.all;
  const RingShares bit = steps.to_ring(rounding_bit(steps, c, s, carries), bits - s);
  const u64 minus_one = steps.constant(~u64{0});
  return steps.map(x.count, bits - s, [&](i64 i) { return minus_one - (c[i] >> s) - bit[i]; });
}

RingShares truncate_sticky(Steps& steps, const RingShares& x, int bits, int s) {
  const RingShares c = complement(steps, x, 0, bits);
  Carries carries = steps.carries(c, s, 0, true);
  carries.low = carries.all;
  const i64 n = x.count;
  // v = something cut off and the lowest bit clear; the complement's lowest bit is set then.
  const BitShares even = steps.map_bits(n, [&](i64 i) { return (c[i] >> s) ^ carries.low[i]; });
  const BitShares v = steps.and_bits(steps.negated(carries.low_ones), even);
  const Selected rings = steps.select({}, {{carries.low, bits - s}, {v, bits - s}});
  const u64 minus_one = steps.constant(~u64{0});
  return steps.map(n, bits - s, [&](i64 i) {
    return minus_one - (c[i] >> s) - rings.conversions[0][i] + rings.conversions[1][i];
  });
}

RoundedShares round_mantissa_shares(Steps& steps, const RingShares& x, int bits, int q,
                                    int carry_width) {
  const int s = bits - 1 - q;
  const i64 n = x.count;
  const RingShares c = complement(steps, x, u64{1} << (s - 1), bits);
  const Carries carries = steps.carries(c, bits - 1, s, true);
  // The top bit of x' is clear exactly where the half unit made it wrap.
  const BitShares carry =
      steps.map_bits(n, [&](i64 i) { return (c[i] >> (bits - 1)) ^ carries.all[i]; });
  const BitShares lacking = rounding_bit(steps, c, s, carries);
  std::vector<Conversion> conversions{{lacking, q + 1}};
  if (carry_width > 0) conversions.push_back({carry, carry_width});
  Selected rings = steps.select({}, conversions);
  const RingShares& bit = rings.conversions[0];
  const u64 minus_one = steps.constant(~u64{0});
  RingShares mantissa = steps.map(
      n, q + 1, [&](i64 i) { return minus_one - (c[i] >> s) - bit[i] + (u64{carry[i]} << q); });
  RoundedShares out{std::move(mantissa), carry, {}};
  if (carry_width > 0) out.carry_ring = std::move(rings.conversions[1]);
  return out;
}

RingShares interleaved(const Steps& steps, const RingShares& mantissa, const RingShares& exponent) {
  RingShares out = steps.ring(2 * mantissa.count);
  steps.local(mantissa.count, [&](i64 i) {
    out[2 * i] = mantissa[i];
    out[2 * i + 1] = exponent[i];
  });
  return out;
}

int pair_width(FloatFormat f) { return std::max(f.exponent_bits(), f.mantissa_bits()); }

RingShares mantissas_of(const Steps& steps, const RingShares& pairs, FloatFormat f) {
  return steps.map(pairs.count / 2, f.mantissa_bits(), [&](i64 i) { return pairs[2 * i]; });
}

RingShares exponents_of(const Steps& steps, const RingShares& pairs, FloatFormat f) {
  return steps.map(pairs.count / 2, f.exponent_bits(), [&](i64 i) { return pairs[2 * i + 1]; });
}

FloatShares check_float(Steps& steps, const FloatShares& a, FloatFormat f) {
  return check_float(steps, a, f, f.exponent_bits());
}

FloatShares check_float(Steps& steps, const FloatShares& a, FloatFormat f, int width) {
  const i64 n = a.exponent.count;
  const int short_width = f.exponent_bits();
  const u64 least = steps.constant(static_cast<u64>(f.least()));
  const u64 greatest = steps.constant(static_cast<u64>(f.greatest()));
  const RingShares differences =
      joined(steps.map(n, width, [&](i64 i) { return a.exponent[i] - least; }),
             steps.map(n, width, [&](i64 i) { return greatest - a.exponent[i]; }));
  const BitShares outside = steps.most_significant_bit(differences, width);
  const BitShares under = part_of(outside, n, 0), over = part_of(outside, n, 1);
  const BitShares zero = steps.or_bits(a.zero, under);
  const BitShares keep = steps.negated(steps.map_bits(n, [&](i64 i) { return zero[i] ^ over[i]; }));
  const u64 base = static_cast<u64>(f.least() - 1);
  const u64 own_base = steps.constant(base);
  const RingShares pairs =
      interleaved(steps, a.mantissa,
                  steps.map(n, short_width, [&](i64 i) { return a.exponent[i] - own_base; }));
  const Selected kept = steps.select({{keep, pairs, 2, pair_width(f)}}, {{over, short_width}});
  const u64 span = static_cast<u64>(f.greatest() + 1) - base;
  FloatShares out{zero, a.sign, steps.ring(n), steps.ring(n)};
  out.exponent = exponents_of(steps, kept.selections[0], f);
  out.mantissa = mantissas_of(steps, kept.selections[0], f);
  steps.local(n, [&](i64 i) {
    const u64 exponent = out.exponent[i] + own_base + span * kept.conversions[0][i];
    out.exponent[i] = exponent & low_mask(short_width);
    out.mantissa[i] =
        (out.mantissa[i] + (u64{over[i]} << f.mantissa)) & low_mask(f.mantissa_bits());
  });
  return out;
}

}  // namespace privml
