// SPDX-License-Identifier: Apache-2.0
#include "functions/float/conversion.h"

#include <bit>

#include "functions/float/addition.h"

namespace privml::floating {
namespace {

constexpr int kMostMantissa = 31;

void expect_fixed(int bits, int scale, int most_bits) {
  expect(bits >= 2 && bits <= most_bits, "floating-point conversion: bits out of range");
  expect(scale >= 0 && scale < 64, "floating-point conversion: scale must lie in 0..63");
}

// Exponents in a ring where they can be moved by up to 2^7.
int moved_width(FloatFormat f) { return std::max(f.exponent_bits(), 8) + 1; }

functions::RingShares moved_exponents(functions::Evaluator& evaluator, const FloatShares& a,
                                      FloatFormat f, int by) {
  const int width = moved_width(f);
  const u64 added = evaluator.constant(static_cast<u64>(by));
  const functions::RingShares wide =
      evaluator.extend_bounded(a.exponent, f.exponent_bits(), u64{1} << f.exponent, width);
  return evaluator.map(evaluator.n, width, [&](i64 i) { return wide[i] + added; });
}

// [e < low] and [e > high], one after the other.
functions::BitShares outside(functions::Evaluator& evaluator, const functions::RingShares& e,
                             int width, i64 low, i64 high) {
  const u64 own_low = evaluator.constant(static_cast<u64>(low));
  const u64 own_high = evaluator.constant(static_cast<u64>(high));
  return evaluator.most_significant_bit(
      functions::joined(evaluator.map(evaluator.n, width, [&](i64 i) { return e[i] - own_low; }),
                        evaluator.map(evaluator.n, width, [&](i64 i) { return own_high - e[i]; })),
      width);
}

// The nearest integer to m 2^(e - q) for -1 <= e < integer_bits - 1, in Z_{2^integer_bits}; 0 for m
// = 0, and anything for other e.
functions::RingShares nearest_integer(functions::Evaluator& evaluator, const FloatShares& a,
                                      const functions::RingShares& e, FloatFormat f,
                                      int integer_bits) {
  const int q = f.mantissa, ring = integer_bits + q + 1;
  const int shift_bits = std::bit_width(static_cast<unsigned>(integer_bits - 1));
  std::vector<u64> table(u64{1} << shift_bits);
  for (u64 shift = 0; shift < table.size(); ++shift) table[shift] = shift_digits(shift, shift_bits);
  const u64 one = evaluator.constant(1);
  const functions::RingShares index =
      evaluator.map(evaluator.n, shift_bits, [&](i64 i) { return e[i] + one; });
  const functions::RingShares digits =
      evaluator.lookup_xor(table, index, shift_bits, shift_digits_width(shift_bits));
  const functions::RingShares wide =
      evaluator.extend_shared_msb(a.mantissa, q + 1, evaluator.negated(a.zero), ring);
  return round_shift(evaluator, shift_left(evaluator, wide, digits, shift_bits, ring), ring, q + 1);
}

// floats_to_fixed() if the ring has no room for the mantissa behind the point: numbers of up to
// 62 - q places are rounded as there, greater ones are integers, the mantissa shifted left.
functions::RingShares wide_fixed(functions::Evaluator& evaluator, const FloatShares& a,
                                 const functions::RingShares& e, FloatFormat f, int bits) {
  const i64 n = evaluator.n;
  const int q = f.mantissa, narrow = 63 - q, width = moved_width(f);
  const functions::BitShares ends = outside(evaluator, e, width, -1, narrow - 2);
  const functions::BitShares far = functions::part_of(ends, n, 1);
  const u64 limit = evaluator.constant(static_cast<u64>(bits - 2));
  const functions::BitShares beyond = evaluator.most_significant_bit(
      evaluator.map(n, width, [&](i64 i) { return limit - e[i]; }), width);
  const functions::BitShares keep =
      evaluator.negated(evaluator.map_bits(n, [&](i64 i) { return ends[i] ^ far[i]; }));
  const functions::BitShares whole =
      evaluator.map_bits(n, [&](i64 i) { return far[i] ^ beyond[i]; });
  // Below 2^(narrow-1) also after rounding, since q + 1 < narrow.
  const functions::RingShares rounded =
      evaluator.select(keep, nearest_integer(evaluator, a, e, f, narrow), narrow);
  const functions::RingShares near = evaluator.extend_known_msb(rounded, narrow, 0, bits);
  const int shift_bits = std::bit_width(static_cast<unsigned>(bits - 1 - narrow) | 1);
  std::vector<u64> table(u64{1} << shift_bits);
  for (u64 shift = 0; shift < table.size(); ++shift) table[shift] = shift_digits(shift, shift_bits);
  const u64 least = evaluator.constant(static_cast<u64>(narrow - 1));
  const functions::RingShares index =
      evaluator.map(n, shift_bits, [&](i64 i) { return e[i] - least; });
  const functions::RingShares digits =
      evaluator.lookup_xor(table, index, shift_bits, shift_digits_width(shift_bits));
  const functions::RingShares mantissa =
      evaluator.extend_shared_msb(a.mantissa, q + 1, evaluator.negated(a.zero), bits);
  const functions::RingShares shifted = shift_left(
      evaluator, evaluator.map(n, bits, [&](i64 i) { return mantissa[i] << (narrow - 1 - q); }),
      digits, shift_bits, bits);
  const functions::RingShares large = evaluator.select(whole, shifted, bits);
  // Beyond the range: -2^(bits-1), or one less than 2^(bits-1). In formats of few exponents a great
  // scale takes zeros' exponents there too.
  const functions::BitShares over = evaluator.and_bits(beyond, evaluator.negated(a.zero));
  const functions::BitShares positive_end = evaluator.and_bits(over, evaluator.negated(a.sign));
  const functions::RingShares total = evaluator.map(
      n, bits, [&](i64 i) { return near[i] + large[i] + (u64{over[i]} << (bits - 1)); });
  const functions::Selected rings =
      evaluator.select({{a.sign, total, 1, bits - 1}}, {{positive_end, bits}});
  return evaluator.map(n, bits, [&](i64 i) {
    return total[i] - 2 * rings.selections[0][i] - rings.conversions[0][i];
  });
}

}  // namespace

FloatShares floats_from_fixed(functions::Evaluator& evaluator, const functions::RingShares& x,
                              int bits, int scale, FloatFormat f) {
  const i64 n = evaluator.n;
  const int q = f.mantissa, width = std::max(f.exponent_bits(), 9);
  const functions::BitShares sign = evaluator.most_significant_bit(x, bits);
  const functions::RingShares taken = evaluator.select(sign, x, bits - 1);
  const NormalizedShares number = normalize(
      evaluator, evaluator.map(n, bits, [&](i64 i) { return x[i] - 2 * taken[i]; }), bits, width);
  const u64 moved = evaluator.constant(static_cast<u64>(scale));
  FloatShares out{number.zero, sign, number.place, number.mantissa};
  if (bits > q + 1) {
    RoundedShares rounded = round_mantissa_shares(evaluator, number.mantissa, bits, q, width);
    evaluator.local(n, [&](i64 i) { out.exponent[i] += rounded.carry_ring[i]; });
    out.mantissa = std::move(rounded.mantissa);
  } else {
    evaluator.local(n, [&](i64 i) { out.mantissa[i] <<= q + 1 - bits; });
  }
  evaluator.local(n, [&](i64 i) { out.exponent[i] = (out.exponent[i] - moved) & low_mask(width); });
  // Zeros have place 0 and a carry: neither is above the greatest exponent.
  return check_float(evaluator, out, f, width);
}

functions::RingShares floats_to_fixed(functions::Evaluator& evaluator, const FloatShares& a,
                                      FloatFormat f, int bits, int scale) {
  const i64 n = evaluator.n;
  const int width = moved_width(f);
  const functions::RingShares e = moved_exponents(evaluator, a, f, scale);
  if (bits > 63 - f.mantissa) return wide_fixed(evaluator, a, e, f, bits);
  const functions::BitShares ends = outside(evaluator, e, width, -1, bits - 2);
  const functions::BitShares keep =
      evaluator.negated(evaluator.map_bits(n, [&](i64 i) { return ends[i] ^ ends[n + i]; }));
  const functions::BitShares large =
      evaluator.and_bits(functions::part_of(ends, n, 1), evaluator.negated(a.zero));
  const functions::RingShares magnitude =
      evaluator.select(keep, nearest_integer(evaluator, a, e, f, bits), bits);
  // Rounding may reach 2^(bits-1) if the mantissa is as long as the integer.
  functions::BitShares at_end = large;
  if (bits <= f.mantissa + 1) {
    const functions::BitShares reached = evaluator.most_significant_bit(magnitude, bits);
    evaluator.local(n, [&](i64 i) { at_end[i] ^= reached[i]; });
  }
  const functions::BitShares positive_end = evaluator.and_bits(at_end, evaluator.negated(a.sign));
  const functions::RingShares total =
      evaluator.map(n, bits, [&](i64 i) { return magnitude[i] + (u64{large[i]} << (bits - 1)); });
  const functions::Selected rings =
      evaluator.select({{a.sign, total, 1, bits - 1}}, {{positive_end, bits}});
  return evaluator.map(n, bits, [&](i64 i) {
    return total[i] - 2 * rings.selections[0][i] - rings.conversions[0][i];
  });
}

FloatShares cast_floats(functions::Evaluator& evaluator, const FloatShares& a, FloatFormat from,
                        FloatFormat to) {
  const i64 n = evaluator.n;
  const int width = std::max(from.exponent_bits(), to.exponent_bits());
  FloatShares out = a;
  if (to.mantissa >= from.mantissa) {
    evaluator.local(n, [&](i64 i) { out.mantissa[i] <<= to.mantissa - from.mantissa; });
    if (from.exponent == to.exponent) return out;
  }
  if (width > from.exponent_bits()) {
    out.exponent =
        evaluator.extend_bounded(a.exponent, from.exponent_bits(), u64{1} << from.exponent, width);
  }
  if (to.mantissa < from.mantissa) {
    RoundedShares rounded =
        round_mantissa_shares(evaluator, a.mantissa, from.mantissa_bits(), to.mantissa, width);
    evaluator.local(n, [&](i64 i) {
      out.exponent[i] = (out.exponent[i] + rounded.carry_ring[i]) & low_mask(width);
    });
    out.mantissa = std::move(rounded.mantissa);
  }
  return check_float(evaluator, out, to, width);
}

FloatShares rounded_floats(functions::Evaluator& evaluator, const FloatShares& a, FloatFormat f) {
  const i64 n = evaluator.n;
  const int q = f.mantissa, width = f.exponent_bits();
  const functions::BitShares ends = outside(evaluator, a.exponent, width, -1, q - 1);
  const functions::BitShares big = functions::part_of(ends, n, 1);
  const NormalizedShares whole =
      normalize(evaluator, nearest_integer(evaluator, a, a.exponent, f, q + 1), q + 1, width);
  const functions::RingShares moved = evaluator.select(
      big,
      interleaved(evaluator,
                  evaluator.map(n, q + 1, [&](i64 i) { return a.mantissa[i] - whole.mantissa[i]; }),
                  evaluator.map(n, width, [&](i64 i) { return a.exponent[i] - whole.place[i]; })),
      pair_width(f));
  const functions::BitShares near_zero =
      evaluator.or_bits(whole.zero, functions::part_of(ends, n, 0));
  const functions::BitShares zero = evaluator.and_bits(near_zero, evaluator.negated(big));
  const functions::RingShares exponent = exponents_of(evaluator, moved, f),
                              mantissa = mantissas_of(evaluator, moved, f);
  const u64 base = evaluator.constant(static_cast<u64>(f.least() - 1));
  const functions::RingShares pairs = interleaved(
      evaluator, evaluator.map(n, q + 1, [&](i64 i) { return whole.mantissa[i] + mantissa[i]; }),
      evaluator.map(n, width, [&](i64 i) { return whole.place[i] + exponent[i] - base; }));
  const functions::RingShares kept =
      evaluator.select(evaluator.negated(zero), pairs, pair_width(f));
  FloatShares out{zero, a.sign, exponents_of(evaluator, kept, f), mantissas_of(evaluator, kept, f)};
  evaluator.local(n, [&](i64 i) { out.exponent[i] = (out.exponent[i] + base) & low_mask(width); });
  return out;
}

Operation<FloatShares, functions::RingShares> float_from_fixed(int bits, int scale, FloatFormat f) {
  expect_float_format(f, kMostMantissa);
  expect_fixed(bits, scale, 64);
  return {{bits}, with(floats_from_fixed, bits, scale, f)};
}

Operation<functions::RingShares, FloatShares> float_to_fixed(FloatFormat f, int bits, int scale) {
  expect_float_format(f, kMostMantissa);
  expect_fixed(bits, scale, f.mantissa < kMostMantissa ? 64 : 63 - f.mantissa);
  return {{f}, with(floats_to_fixed, f, bits, scale)};
}

FloatUnary float_cast(FloatFormat from, FloatFormat to) {
  expect_float_format(from, kMostMantissa);
  expect_float_format(to, kMostMantissa);
  return {{from}, with(cast_floats, from, to)};
}

FloatUnary float_round_to_integer(FloatFormat f) {
  expect_float_format(f, kMostMantissa);
  return {{f}, with(rounded_floats, f)};
}

}  // namespace privml::floating
