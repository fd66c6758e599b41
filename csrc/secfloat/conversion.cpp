// SPDX-License-Identifier: Apache-2.0
#include "secfloat/conversion.h"

#include <bit>

#include "secfloat/addition.h"
#include "secfloat/operation.h"

namespace privml {
namespace {

constexpr int kMostMantissa = 31;

void expect_fixed(int bits, int scale, int most_bits) {
  expect(bits >= 2 && bits <= most_bits, "floating-point conversion: bits out of range");
  expect(scale >= 0 && scale < 64, "floating-point conversion: scale must lie in 0..63");
}

// Exponents in a ring where they can be moved by up to 2^7.
int moved_width(FloatFormat f) { return std::max(f.exponent_bits(), 8) + 1; }

RingShares moved_exponents(Steps& steps, const FloatShares& a, FloatFormat f, int by) {
  const int width = moved_width(f);
  const u64 added = steps.constant(static_cast<u64>(by));
  const RingShares wide =
      steps.extend_bounded(a.exponent, f.exponent_bits(), u64{1} << f.exponent, width);
  return steps.map(steps.n, width, [&](i64 i) { return wide[i] + added; });
}

// [e < low] and [e > high], one after the other.
BitShares outside(Steps& steps, const RingShares& e, int width, i64 low, i64 high) {
  const u64 own_low = steps.constant(static_cast<u64>(low));
  const u64 own_high = steps.constant(static_cast<u64>(high));
  return steps.most_significant_bit(
      joined(steps.map(steps.n, width, [&](i64 i) { return e[i] - own_low; }),
             steps.map(steps.n, width, [&](i64 i) { return own_high - e[i]; })),
      width);
}

// The nearest integer to m 2^(e - q) for -1 <= e < integer_bits - 1, in Z_{2^integer_bits}; 0 for m
// = 0, and anything for other e.
RingShares nearest_integer(Steps& steps, const FloatShares& a, const RingShares& e, FloatFormat f,
                           int integer_bits) {
  const int q = f.mantissa, ring = integer_bits + q + 1;
  const int shift_bits = std::bit_width(static_cast<unsigned>(integer_bits - 1));
  std::vector<u64> table(u64{1} << shift_bits);
  for (u64 shift = 0; shift < table.size(); ++shift) table[shift] = shift_digits(shift, shift_bits);
  const u64 one = steps.constant(1);
  const RingShares index = steps.map(steps.n, shift_bits, [&](i64 i) { return e[i] + one; });
  const RingShares digits =
      steps.lookup_xor(table, index, shift_bits, shift_digits_width(shift_bits));
  const RingShares wide = steps.extend_shared_msb(a.mantissa, q + 1, steps.negated(a.zero), ring);
  return round_shift(steps, shift_left(steps, wide, digits, shift_bits, ring), ring, q + 1);
}

// floats_to_fixed() where the ring has no room for the mantissa behind the point: numbers of up to
// 62 - q places are rounded as there, greater ones are integers, the mantissa shifted left.
RingShares wide_fixed(Steps& steps, const FloatShares& a, const RingShares& e, FloatFormat f,
                      int bits) {
  const i64 n = steps.n;
  const int q = f.mantissa, narrow = 63 - q, width = moved_width(f);
  const BitShares ends = outside(steps, e, width, -1, narrow - 2);
  const BitShares far = part_of(ends, n, 1);
  const u64 limit = steps.constant(static_cast<u64>(bits - 2));
  const BitShares beyond =
      steps.most_significant_bit(steps.map(n, width, [&](i64 i) { return limit - e[i]; }), width);
  const BitShares keep = steps.negated(steps.map_bits(n, [&](i64 i) { return ends[i] ^ far[i]; }));
  const BitShares whole = steps.map_bits(n, [&](i64 i) { return far[i] ^ beyond[i]; });
  // Below 2^(narrow-1) also after rounding, since q + 1 < narrow.
  const RingShares rounded = steps.select(keep, nearest_integer(steps, a, e, f, narrow), narrow);
  const RingShares near = steps.extend_known_msb(rounded, narrow, 0, bits);
  const int shift_bits = std::bit_width(static_cast<unsigned>(bits - 1 - narrow) | 1);
  std::vector<u64> table(u64{1} << shift_bits);
  for (u64 shift = 0; shift < table.size(); ++shift) table[shift] = shift_digits(shift, shift_bits);
  const u64 least = steps.constant(static_cast<u64>(narrow - 1));
  const RingShares index = steps.map(n, shift_bits, [&](i64 i) { return e[i] - least; });
  const RingShares digits =
      steps.lookup_xor(table, index, shift_bits, shift_digits_width(shift_bits));
  const RingShares mantissa =
      steps.extend_shared_msb(a.mantissa, q + 1, steps.negated(a.zero), bits);
  const RingShares shifted =
      shift_left(steps, steps.map(n, bits, [&](i64 i) { return mantissa[i] << (narrow - 1 - q); }),
                 digits, shift_bits, bits);
  const RingShares large = steps.select(whole, shifted, bits);
  // Beyond the range: -2^(bits-1), or one less than 2^(bits-1). In formats of few exponents a great
  // scale takes zeros' exponents there too.
  const BitShares over = steps.and_bits(beyond, steps.negated(a.zero));
  const BitShares positive_end = steps.and_bits(over, steps.negated(a.sign));
  const RingShares total =
      steps.map(n, bits, [&](i64 i) { return near[i] + large[i] + (u64{over[i]} << (bits - 1)); });
  const Selected rings = steps.select({{a.sign, total, 1, bits - 1}}, {{positive_end, bits}});
  return steps.map(n, bits, [&](i64 i) {
    return total[i] - 2 * rings.selections[0][i] - rings.conversions[0][i];
  });
}

}  // namespace

FloatShares floats_from_fixed(Steps& steps, const RingShares& x, int bits, int scale,
                              FloatFormat f) {
  const i64 n = steps.n;
  const int q = f.mantissa, width = std::max(f.exponent_bits(), 9);
  const BitShares sign = steps.most_significant_bit(x, bits);
  const RingShares taken = steps.select(sign, x, bits - 1);
  const NormalizedShares number =
      normalize(steps, steps.map(n, bits, [&](i64 i) { return x[i] - 2 * taken[i]; }), bits, width);
  const u64 moved = steps.constant(static_cast<u64>(scale));
  FloatShares out{number.zero, sign, number.place, number.mantissa};
  if (bits > q + 1) {
    RoundedShares rounded = round_mantissa_shares(steps, number.mantissa, bits, q, width);
    steps.local(n, [&](i64 i) { out.exponent[i] += rounded.carry_ring[i]; });
    out.mantissa = std::move(rounded.mantissa);
  } else {
    steps.local(n, [&](i64 i) { out.mantissa[i] <<= q + 1 - bits; });
  }
  steps.local(n, [&](i64 i) { out.exponent[i] = (out.exponent[i] - moved) & low_mask(width); });
  // Zeros have place 0 and a carry: neither is above the greatest exponent.
  return check_float(steps, out, f, width);
}

RingShares floats_to_fixed(Steps& steps, const FloatShares& a, FloatFormat f, int bits, int scale) {
  const i64 n = steps.n;
  const int width = moved_width(f);
  const RingShares e = moved_exponents(steps, a, f, scale);
  if (bits > 63 - f.mantissa) return wide_fixed(steps, a, e, f, bits);
  const BitShares ends = outside(steps, e, width, -1, bits - 2);
  const BitShares keep =
      steps.negated(steps.map_bits(n, [&](i64 i) { return ends[i] ^ ends[n + i]; }));
  const BitShares large = steps.and_bits(part_of(ends, n, 1), steps.negated(a.zero));
  const RingShares magnitude = steps.select(keep, nearest_integer(steps, a, e, f, bits), bits);
  // Rounding may reach 2^(bits-1) where the mantissa is as long as the integer.
  BitShares at_end = large;
  if (bits <= f.mantissa + 1) {
    const BitShares reached = steps.most_significant_bit(magnitude, bits);
    steps.local(n, [&](i64 i) { at_end[i] ^= reached[i]; });
  }
  const BitShares positive_end = steps.and_bits(at_end, steps.negated(a.sign));
  const RingShares total =
      steps.map(n, bits, [&](i64 i) { return magnitude[i] + (u64{large[i]} << (bits - 1)); });
  const Selected rings = steps.select({{a.sign, total, 1, bits - 1}}, {{positive_end, bits}});
  return steps.map(n, bits, [&](i64 i) {
    return total[i] - 2 * rings.selections[0][i] - rings.conversions[0][i];
  });
}

FloatShares cast_floats(Steps& steps, const FloatShares& a, FloatFormat from, FloatFormat to) {
  const i64 n = steps.n;
  const int width = std::max(from.exponent_bits(), to.exponent_bits());
  FloatShares out = a;
  if (to.mantissa >= from.mantissa) {
    steps.local(n, [&](i64 i) { out.mantissa[i] <<= to.mantissa - from.mantissa; });
    if (from.exponent == to.exponent) return out;
  }
  if (width > from.exponent_bits()) {
    out.exponent =
        steps.extend_bounded(a.exponent, from.exponent_bits(), u64{1} << from.exponent, width);
  }
  if (to.mantissa < from.mantissa) {
    RoundedShares rounded =
        round_mantissa_shares(steps, a.mantissa, from.mantissa_bits(), to.mantissa, width);
    steps.local(n, [&](i64 i) {
      out.exponent[i] = (out.exponent[i] + rounded.carry_ring[i]) & low_mask(width);
    });
    out.mantissa = std::move(rounded.mantissa);
  }
  return check_float(steps, out, to, width);
}

FloatShares rounded_floats(Steps& steps, const FloatShares& a, FloatFormat f) {
  const i64 n = steps.n;
  const int q = f.mantissa, width = f.exponent_bits();
  const BitShares ends = outside(steps, a.exponent, width, -1, q - 1);
  const BitShares big = part_of(ends, n, 1);
  const NormalizedShares whole =
      normalize(steps, nearest_integer(steps, a, a.exponent, f, q + 1), q + 1, width);
  const RingShares moved = steps.select(
      big,
      interleaved(steps,
                  steps.map(n, q + 1, [&](i64 i) { return a.mantissa[i] - whole.mantissa[i]; }),
                  steps.map(n, width, [&](i64 i) { return a.exponent[i] - whole.place[i]; })),
      pair_width(f));
  const BitShares near_zero = steps.or_bits(whole.zero, part_of(ends, n, 0));
  const BitShares zero = steps.and_bits(near_zero, steps.negated(big));
  const RingShares exponent = exponents_of(steps, moved, f),
                   mantissa = mantissas_of(steps, moved, f);
  const u64 base = steps.constant(static_cast<u64>(f.least() - 1));
  const RingShares pairs = interleaved(
      steps, steps.map(n, q + 1, [&](i64 i) { return whole.mantissa[i] + mantissa[i]; }),
      steps.map(n, width, [&](i64 i) { return whole.place[i] + exponent[i] - base; }));
  const RingShares kept = steps.select(steps.negated(zero), pairs, pair_width(f));
  FloatShares out{zero, a.sign, exponents_of(steps, kept, f), mantissas_of(steps, kept, f)};
  steps.local(n, [&](i64 i) { out.exponent[i] = (out.exponent[i] + base) & low_mask(width); });
  return out;
}

void float_from_fixed(Party& party, std::span<const u64> x, int bits, int scale, FloatFormat f,
                      FloatSpan out) {
  expect_float_format(f, kMostMantissa);
  expect_fixed(bits, scale, 64);
  expect(std::ssize(x) == out.size(), "float_from_fixed: lengths differ");
  run_steps(party, out.size(), [&](Steps& steps, i64 begin) {
    const RingShares words = steps.map(steps.n, bits, [&](i64 i) { return x[begin + i]; });
    steps.store(floats_from_fixed(steps, words, bits, scale, f), out, begin);
  });
}

void cost_float_from_fixed(CostMeter& meter, i64 n, int bits, int scale, FloatFormat f) {
  cost_steps(meter, n, [&](Steps& steps, i64) {
    floats_from_fixed(steps, steps.ring(steps.n), bits, scale, f);
  });
}

void float_to_fixed(Party& party, FloatView a, FloatFormat f, int bits, int scale,
                    std::span<u64> out) {
  expect_float_format(f, kMostMantissa);
  expect_fixed(bits, scale, f.mantissa < kMostMantissa ? 64 : 63 - f.mantissa);
  expect(a.size() == std::ssize(out), "float_to_fixed: lengths differ");
  run_steps(party, a.size(), [&](Steps& steps, i64 begin) {
    const RingShares words = floats_to_fixed(steps, steps.load(a, f, begin), f, bits, scale);
    steps.local(steps.n, [&](i64 i) { out[begin + i] = words[i]; });
  });
}

void cost_float_to_fixed(CostMeter& meter, i64 n, FloatFormat f, int bits, int scale) {
  cost_unary_steps(meter, n, f, [&](Steps& steps, const FloatShares& x) {
    floats_to_fixed(steps, x, f, bits, scale);
  });
}

void float_cast(Party& party, FloatView a, FloatFormat from, FloatFormat to, FloatSpan out) {
  expect_float_format(from, kMostMantissa);
  expect_float_format(to, kMostMantissa);
  expect(a.size() == out.size(), "float_cast: lengths differ");
  run_unary_steps(party, a, from, out, [&](Steps& steps, const FloatShares& x) {
    return cast_floats(steps, x, from, to);
  });
}

void cost_float_cast(CostMeter& meter, i64 n, FloatFormat from, FloatFormat to) {
  cost_unary_steps(meter, n, from,
                   [&](Steps& steps, const FloatShares& x) { cast_floats(steps, x, from, to); });
}

void float_round_to_integer(Party& party, FloatView a, FloatFormat f, FloatSpan out) {
  expect_float_format(f, kMostMantissa);
  expect(a.size() == out.size(), "float_round_to_integer: lengths differ");
  run_unary_steps(party, a, f, out,
                  [&](Steps& steps, const FloatShares& x) { return rounded_floats(steps, x, f); });
}

void cost_float_round_to_integer(CostMeter& meter, i64 n, FloatFormat f) {
  cost_unary_steps(meter, n, f,
                   [&](Steps& steps, const FloatShares& x) { rounded_floats(steps, x, f); });
}

}  // namespace privml
