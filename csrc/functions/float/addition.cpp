// SPDX-License-Identifier: Apache-2.0
#include "functions/float/addition.h"

#include <bit>
#include <tuple>

namespace privml::floating {
namespace {

constexpr int kMostMantissa = 30;

// The operands in order of magnitude, mantissas in Z_{2^width}.
struct Ordered {
  functions::BitShares sign;       // of the larger one
  functions::RingShares exponent;  // of the larger one
  functions::RingShares larger, smaller;
  functions::RingShares distance;           // of exponents, >= 0
  functions::BitShares opposite;            // signs differ
  functions::BitShares negative_cancelled;  // and the larger one is negative
};

Ordered order(functions::Evaluator& evaluator, const FloatShares& a, const FloatShares& b,
              FloatFormat f, int width) {
  const i64 n = evaluator.n;
  const int bits = f.exponent + f.mantissa + 2, e_bits = f.exponent_bits();
  const int extended_bits = std::max(width, bits);
  const functions::RingShares wide = extended_mantissas(evaluator, a, b, f, extended_bits);
  const functions::RingShares both = magnitudes(evaluator, wide, a, b, f, bits);
  const functions::BitShares less = evaluator.most_significant_bit(
      evaluator.map(n, bits, [&](i64 i) { return both[i] - both[n + i]; }), bits);
  const functions::RingShares mantissas =
      evaluator.map(n, width, [&](i64 i) { return wide[n + i] - wide[i]; });
  const functions::RingShares exponents =
      evaluator.map(n, e_bits, [&](i64 i) { return b.exponent[i] - a.exponent[i]; });
  const functions::BitShares opposite =
      evaluator.map_bits(n, [&](i64 i) { return a.sign[i] ^ b.sign[i]; });
  const functions::RingShares differing = evaluator.map(n, 1, [&](i64 i) { return opposite[i]; });
  // Products of bits are selections of one bit.
  const functions::Selected moved = evaluator.select({{less, mantissas, 1, width},
                                                      {less, exponents, 1, e_bits},
                                                      {less, differing, 1, 1},
                                                      {a.sign, differing, 1, 1}},
                                                     {});
  const auto& [m, e, s, negative] =
      std::tie(moved.selections[0], moved.selections[1], moved.selections[2], moved.selections[3]);
  Ordered out;
  out.sign = evaluator.map_bits(n, [&](i64 i) { return a.sign[i] ^ s[i]; });
  out.exponent = evaluator.map(n, e_bits, [&](i64 i) { return a.exponent[i] + e[i]; });
  out.larger = evaluator.map(n, width, [&](i64 i) { return wide[i] + m[i]; });
  out.smaller = evaluator.map(n, width, [&](i64 i) { return wide[n + i] - m[i]; });
  out.distance = evaluator.map(n, e_bits, [&](i64 i) { return 2 * e[i] - exponents[i]; });
  out.opposite = opposite;
  out.negative_cancelled = evaluator.map_bits(n, [&](i64 i) { return negative[i] ^ s[i]; });
  return out;
}

// q + 2 - distance: negative if the smaller operand does not count.
functions::RingShares room(functions::Evaluator& evaluator, const functions::RingShares& distance,
                           FloatFormat f) {
  const u64 limit = evaluator.constant(static_cast<u64>(f.mantissa) + 2);
  return evaluator.map(evaluator.n, f.exponent_bits(), [&](i64 i) { return limit - distance[i]; });
}

// Digits of shifts by distances below 2^shift_bits.
functions::RingShares digits_of(functions::Evaluator& evaluator,
                                const functions::RingShares& distance, int shift_bits) {
  std::vector<u64> table(u64{1} << shift_bits);
  for (u64 d = 0; d < table.size(); ++d) table[d] = shift_digits(d, shift_bits);
  const functions::RingShares index =
      evaluator.map(evaluator.n, shift_bits, [&](i64 i) { return distance[i]; });
  return evaluator.lookup_xor(table, index, shift_bits, shift_digits_width(shift_bits));
}

// far ? the larger operand : near, and the check of near.
FloatShares checked_sum(functions::Evaluator& evaluator, const FloatShares& near,
                        const Ordered& operands, FloatFormat f) {
  const i64 n = evaluator.n;
  const int width = f.exponent_bits();
  const u64 least = evaluator.constant(static_cast<u64>(f.least()));
  const u64 greatest = evaluator.constant(static_cast<u64>(f.greatest()));
  const functions::RingShares differences = functions::joined(
      functions::joined(
          evaluator.map(n, width, [&](i64 i) { return near.exponent[i] - least; }),
          evaluator.map(n, width, [&](i64 i) { return greatest - near.exponent[i]; })),
      room(evaluator, operands.distance, f));
  const functions::BitShares outside = evaluator.most_significant_bit(differences, width);
  const functions::BitShares under = functions::part_of(outside, n, 0),
                             far = functions::part_of(outside, n, 2);
  const functions::BitShares close = evaluator.negated(far);
  // An exact zero is negative only if both operands are; the larger one's sign says it.
  const functions::BitShares first =
      evaluator.and_bits(functions::joined(near.zero, near.zero),
                         functions::joined(under, operands.negative_cancelled));
  const functions::BitShares small =
      evaluator.map_bits(n, [&](i64 i) { return first[i] ^ near.zero[i] ^ under[i]; });
  const functions::BitShares second = evaluator.and_bits(
      functions::joined(functions::joined(close, close), close),
      functions::joined(functions::joined(small, functions::part_of(outside, n, 1)),
                        functions::part_of(first, n, 1)));
  const functions::BitShares zero = functions::part_of(second, n, 0),
                             over = functions::part_of(second, n, 1);
  const functions::BitShares keep =
      evaluator.map_bits(n, [&](i64 i) { return close[i] ^ zero[i] ^ over[i]; });
  const u64 base = static_cast<u64>(f.least() - 1), own_base = evaluator.constant(base);
  const functions::RingShares kept =
      interleaved(evaluator, near.mantissa,
                  evaluator.map(n, width, [&](i64 i) { return near.exponent[i] - own_base; }));
  const functions::RingShares larger = interleaved(
      evaluator, evaluator.map(n, f.mantissa_bits(), [&](i64 i) { return operands.larger[i]; }),
      evaluator.map(n, width, [&](i64 i) { return operands.exponent[i] - own_base; }));
  const functions::Selected chosen = evaluator.select(
      {{keep, kept, 2, pair_width(f)}, {far, larger, 2, pair_width(f)}}, {{over, width}});
  const u64 span = static_cast<u64>(f.greatest() + 1) - base;
  const functions::RingShares pairs = evaluator.map(2 * n, pair_width(f), [&](i64 i) {
    return chosen.selections[0][i] + chosen.selections[1][i];
  });
  FloatShares out{zero, operands.sign, exponents_of(evaluator, pairs, f),
                  mantissas_of(evaluator, pairs, f)};
  evaluator.local(n, [&](i64 i) {
    out.sign[i] ^= second[2 * n + i];
    out.exponent[i] =
        (out.exponent[i] + own_base + span * chosen.conversions[0][i]) & low_mask(width);
    out.mantissa[i] =
        (out.mantissa[i] + (u64{over[i]} << f.mantissa)) & low_mask(f.mantissa_bits());
  });
  return out;
}

}  // namespace

int shift_digits_width(int shift_bits) { return 3 * (shift_bits / 2) + shift_bits % 2; }

u64 shift_digits(u64 shift, int shift_bits) {
  u64 word = 0;
  for (int digit = 0; 2 * digit < shift_bits; ++digit) {
    const u64 value = (shift >> (2 * digit)) & 3;
    if (value != 0) word |= u64{1} << (3 * digit + static_cast<int>(value) - 1);
  }
  return word;
}

functions::RingShares shift_left(functions::Evaluator& evaluator, const functions::RingShares& x,
                                 const functions::RingShares& digits, int shift_bits, int width) {
  functions::Selected none;
  return shift_left(evaluator, x, digits, shift_bits, width, {}, {}, none);
}

functions::RingShares shift_left(functions::Evaluator& evaluator, const functions::RingShares& x,
                                 const functions::RingShares& digits, int shift_bits, int width,
                                 std::vector<functions::Selection> selections,
                                 const std::vector<functions::Conversion>& conversions,
                                 functions::Selected& others) {
  const i64 n = x.count;
  functions::RingShares out = x;
  for (int digit = 0; 2 * digit < shift_bits; ++digit) {
    const int step = 1 << (2 * digit), choices = 2 * digit + 1 < shift_bits ? 3 : 1;
    // Choice k = 1..3 adds (2^(k step) - 1) x.
    functions::BitShares bits = evaluator.bits(n * choices);
    functions::RingShares values = evaluator.ring(n * choices);
    evaluator.local(n, [&](i64 i) {
      for (int k = 1; k <= choices; ++k) {
        const int shift = k * step;
        bits[(k - 1) * n + i] = static_cast<u8>((digits[i] >> (3 * digit + k - 1)) & 1);
        values[(k - 1) * n + i] = (shift < 64 ? out[i] << shift : 0) - out[i];
      }
    });
    functions::RingShares added;
    if (digit == 0) {
      selections.push_back({bits, values, 1, width});
      others = evaluator.select(selections, conversions);
      added = std::move(others.selections.back());
      others.selections.pop_back();
    } else {
      added = evaluator.select(bits, values, width);
    }
    evaluator.local(n, [&](i64 i) {
      for (int k = 0; k < choices; ++k) out[i] += added[k * n + i];
      out[i] &= low_mask(width);
    });
  }
  return out;
}

NormalizedShares normalize(functions::Evaluator& evaluator, const functions::RingShares& x,
                           int bits, int place_width) {
  const i64 n = x.count;
  const int shift_bits = std::bit_width(static_cast<unsigned>(bits - 1));
  const functions::BitShares one_hot = evaluator.most_significant_nonzero_bit(x, bits);
  std::vector<u64> places(bits), shifts(bits), ones(bits, 1);
  for (int place = 0; place < bits; ++place) {
    places[place] = static_cast<u64>(place);
    shifts[place] = shift_digits(static_cast<u64>(bits - 1 - place), shift_bits);
  }
  const functions::RingShares nonzero = evaluator.one_hot_select(one_hot, ones);
  const functions::RingShares place = evaluator.one_hot_select(one_hot, places);
  NormalizedShares out;
  out.zero = evaluator.negated(evaluator.map_bits(n, [&](i64 i) { return nonzero[i]; }));
  // The place's bits become additive while its first digit shifts.
  const int place_bits = std::min(shift_bits, place_width);
  std::vector<functions::BitShares> bit;
  for (int j = 0; j < place_bits; ++j) {
    bit.push_back(evaluator.map_bits(n, [&](i64 i) { return place[i] >> j; }));
  }
  std::vector<functions::Conversion> conversions;
  for (int j = 0; j < place_bits; ++j) conversions.push_back({bit[j], place_width - j});
  functions::Selected rings;
  out.mantissa = shift_left(evaluator, x, evaluator.one_hot_select(one_hot, shifts), shift_bits,
                            bits, {}, conversions, rings);
  out.place = evaluator.map(n, place_width, [&](i64 i) {
    u64 sum = 0;
    for (int j = 0; j < place_bits; ++j) sum += rings.conversions[j][i] << j;
    return sum;
  });
  return out;
}

FloatShares add_floats(functions::Evaluator& evaluator, const FloatShares& a, const FloatShares& b,
                       FloatFormat f) {
  const i64 n = evaluator.n;
  const int q = f.mantissa, width = 2 * q + 3;
  const Ordered operands = order(evaluator, a, b, f, width);
  const int shift_bits = std::bit_width(static_cast<unsigned>(q + 2));
  const functions::RingShares digits = digits_of(evaluator, operands.distance, shift_bits);
  functions::Selected taken;
  const functions::RingShares larger =
      shift_left(evaluator, operands.larger, digits, shift_bits, width,
                 {{operands.opposite, operands.smaller, 1, width - 1}}, {}, taken);
  const NormalizedShares sum = normalize(
      evaluator,
      evaluator.map(
          n, width,
          [&](i64 i) { return larger[i] + operands.smaller[i] - 2 * taken.selections[0][i]; }),
      width, f.exponent_bits());
  const RoundedShares rounded =
      round_mantissa_shares(evaluator, sum.mantissa, width, q, f.exponent_bits());
  const u64 scale = evaluator.constant(static_cast<u64>(q));
  FloatShares near{sum.zero, operands.sign, evaluator.ring(n), rounded.mantissa};
  near.exponent = evaluator.map(n, f.exponent_bits(), [&](i64 i) {
    return operands.exponent[i] - operands.distance[i] + sum.place[i] + rounded.carry_ring[i] -
           scale;
  });
  return checked_sum(evaluator, near, operands, f);
}

namespace {

FloatShares subtract_floats(functions::Evaluator& evaluator, const FloatShares& a,
                            const FloatShares& b, FloatFormat f) {
  FloatShares negative = b;
  negative.sign = evaluator.negated(b.sign);
  return add_floats(evaluator, a, negative, f);
}

}  // namespace

FloatBinary float_add(FloatFormat f) {
  expect_float_format(f, kMostMantissa);
  return {{f, f}, with(add_floats, f)};
}

FloatBinary float_subtract(FloatFormat f) {
  expect_float_format(f, kMostMantissa);
  return {{f, f}, with(subtract_floats, f)};
}

}  // namespace privml::floating
