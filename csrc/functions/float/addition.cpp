// SPDX-License-Identifier: Apache-2.0
#include "functions/float/addition.h"

#include <bit>
#include <tuple>

#include "functions/float/operation.h"

namespace privml {
namespace {

constexpr int kMostMantissa = 30;

// The operands in order of magnitude, mantissas in Z_{2^width}.
struct Ordered {
  BitShares sign;       // of the larger one
  RingShares exponent;  // of the larger one
  RingShares larger, smaller;
  RingShares distance;           // of exponents, >= 0
  BitShares opposite;            // signs differ
  BitShares negative_cancelled;  // and the larger one is negative
};

Ordered order(Evaluator& evaluator, const FloatShares& a, const FloatShares& b, FloatFormat f,
              int width) {
  const i64 n = evaluator.n;
  const int bits = f.exponent + f.mantissa + 2, e_bits = f.exponent_bits();
  const int extended_bits = std::max(width, bits);
  const RingShares wide = extended_mantissas(evaluator, a, b, f, extended_bits);
  const RingShares both = magnitudes(evaluator, wide, a, b, f, bits);
  const BitShares less = evaluator.most_significant_bit(
      evaluator.map(n, bits, [&](i64 i) { return both[i] - both[n + i]; }), bits);
  const RingShares mantissas =
      evaluator.map(n, width, [&](i64 i) { return wide[n + i] - wide[i]; });
  const RingShares exponents =
      evaluator.map(n, e_bits, [&](i64 i) { return b.exponent[i] - a.exponent[i]; });
  const BitShares opposite = evaluator.map_bits(n, [&](i64 i) { return a.sign[i] ^ b.sign[i]; });
  const RingShares differing = evaluator.map(n, 1, [&](i64 i) { return opposite[i]; });
  // Products of bits are selections of one bit.
  const Selected moved = evaluator.select({{less, mantissas, 1, width},
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

// most - distance: negative if the smaller operand does not count.
RingShares room(Evaluator& evaluator, const RingShares& distance, int most, FloatFormat f) {
  const u64 limit = evaluator.constant(static_cast<u64>(most));
  return evaluator.map(evaluator.n, f.exponent_bits(), [&](i64 i) { return limit - distance[i]; });
}

// Digits of the shift `of(distance)` for distances below 2^shift_bits.
template <class Of>
RingShares digits_of(Evaluator& evaluator, const RingShares& distance, int shift_bits, Of&& of) {
  std::vector<u64> table(u64{1} << shift_bits);
  for (u64 d = 0; d < table.size(); ++d) {
    table[d] = shift_digits(of(d) & low_mask(shift_bits), shift_bits);
  }
  const RingShares index =
      evaluator.map(evaluator.n, shift_bits, [&](i64 i) { return distance[i]; });
  return evaluator.lookup_xor(table, index, shift_bits, shift_digits_width(shift_bits));
}

// far ? the larger operand : near, and the check of near.
FloatShares checked_sum(Evaluator& evaluator, const FloatShares& near, const Ordered& operands,
                        FloatFormat f) {
  const i64 n = evaluator.n;
  const int width = f.exponent_bits();
  const u64 least = evaluator.constant(static_cast<u64>(f.least()));
  const u64 greatest = evaluator.constant(static_cast<u64>(f.greatest()));
  const RingShares differences =
      joined(joined(evaluator.map(n, width, [&](i64 i) { return near.exponent[i] - least; }),
                    evaluator.map(n, width, [&](i64 i) { return greatest - near.exponent[i]; })),
             room(evaluator, operands.distance, f.mantissa + 2, f));
  const BitShares outside = evaluator.most_significant_bit(differences, width);
  const BitShares under = part_of(outside, n, 0), far = part_of(outside, n, 2);
  const BitShares close = evaluator.negated(far);
  // An exact zero is negative only if both operands are; the larger one's sign says it.
  const BitShares first =
      evaluator.and_bits(joined(near.zero, near.zero), joined(under, operands.negative_cancelled));
  const BitShares small =
      evaluator.map_bits(n, [&](i64 i) { return first[i] ^ near.zero[i] ^ under[i]; });
  const BitShares second =
      evaluator.and_bits(joined(joined(close, close), close),
                         joined(joined(small, part_of(outside, n, 1)), part_of(first, n, 1)));
  const BitShares zero = part_of(second, n, 0), over = part_of(second, n, 1);
  const BitShares keep = evaluator.map_bits(n, [&](i64 i) { return close[i] ^ zero[i] ^ over[i]; });
  const u64 base = static_cast<u64>(f.least() - 1), own_base = evaluator.constant(base);
  const RingShares kept =
      interleaved(evaluator, near.mantissa,
                  evaluator.map(n, width, [&](i64 i) { return near.exponent[i] - own_base; }));
  const RingShares larger = interleaved(
      evaluator, evaluator.map(n, f.mantissa_bits(), [&](i64 i) { return operands.larger[i]; }),
      evaluator.map(n, width, [&](i64 i) { return operands.exponent[i] - own_base; }));
  const Selected chosen = evaluator.select(
      {{keep, kept, 2, pair_width(f)}, {far, larger, 2, pair_width(f)}}, {{over, width}});
  const u64 span = static_cast<u64>(f.greatest() + 1) - base;
  const RingShares pairs = evaluator.map(2 * n, pair_width(f), [&](i64 i) {
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

RingShares shift_left(Evaluator& evaluator, const RingShares& x, const RingShares& digits,
                      int shift_bits, int width) {
  Selected none;
  return shift_left(evaluator, x, digits, shift_bits, width, {}, {}, none);
}

RingShares shift_left(Evaluator& evaluator, const RingShares& x, const RingShares& digits,
                      int shift_bits, int width, std::vector<Selection> selections,
                      const std::vector<Conversion>& conversions, Selected& others) {
  const i64 n = x.count;
  RingShares out = x;
  for (int digit = 0; 2 * digit < shift_bits; ++digit) {
    const int step = 1 << (2 * digit), choices = 2 * digit + 1 < shift_bits ? 3 : 1;
    // Choice k = 1..3 adds (2^(k step) - 1) x.
    BitShares bits = evaluator.bits(n * choices);
    RingShares values = evaluator.ring(n * choices);
    evaluator.local(n, [&](i64 i) {
      for (int k = 1; k <= choices; ++k) {
        const int shift = k * step;
        bits[(k - 1) * n + i] = static_cast<u8>((digits[i] >> (3 * digit + k - 1)) & 1);
        values[(k - 1) * n + i] = (shift < 64 ? out[i] << shift : 0) - out[i];
      }
    });
    RingShares added;
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

NormalizedShares normalize(Evaluator& evaluator, const RingShares& x, int bits, int place_width) {
  const i64 n = x.count;
  const int shift_bits = std::bit_width(static_cast<unsigned>(bits - 1));
  const BitShares one_hot = evaluator.most_significant_nonzero_bit(x, bits);
  std::vector<u64> places(bits), shifts(bits), ones(bits, 1);
  for (int place = 0; place < bits; ++place) {
    places[place] = static_cast<u64>(place);
    shifts[place] = shift_digits(static_cast<u64>(bits - 1 - place), shift_bits);
  }
  const RingShares nonzero = evaluator.one_hot_select(one_hot, ones);
  const RingShares place = evaluator.one_hot_select(one_hot, places);
  NormalizedShares out;
  out.zero = evaluator.negated(evaluator.map_bits(n, [&](i64 i) { return nonzero[i]; }));
  // The place's bits become additive while its first digit shifts.
  const int place_bits = std::min(shift_bits, place_width);
  std::vector<BitShares> bit;
  for (int j = 0; j < place_bits; ++j) {
    bit.push_back(evaluator.map_bits(n, [&](i64 i) { return place[i] >> j; }));
  }
  std::vector<Conversion> conversions;
  for (int j = 0; j < place_bits; ++j) conversions.push_back({bit[j], place_width - j});
  Selected rings;
  out.mantissa = shift_left(evaluator, x, evaluator.one_hot_select(one_hot, shifts), shift_bits,
                            bits, {}, conversions, rings);
  out.place = evaluator.map(n, place_width, [&](i64 i) {
    u64 sum = 0;
    for (int j = 0; j < place_bits; ++j) sum += rings.conversions[j][i] << j;
    return sum;
  });
  return out;
}

FloatShares add_floats(Evaluator& evaluator, const FloatShares& a, const FloatShares& b,
                       FloatFormat f) {
  const i64 n = evaluator.n;
  const int q = f.mantissa, width = 2 * q + 3;
  const Ordered operands = order(evaluator, a, b, f, width);
  const int shift_bits = std::bit_width(static_cast<unsigned>(q + 2));
  const RingShares digits =
      digits_of(evaluator, operands.distance, shift_bits, [](u64 d) { return d; });
  Selected taken;
  const RingShares larger =
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

FloatShares cheap_add_floats(Evaluator& evaluator, const FloatShares& a, const FloatShares& b,
                             FloatFormat f) {
  const i64 n = evaluator.n;
  const int q = f.mantissa, width = 2 * q + 3, e_bits = f.exponent_bits();
  const Ordered operands = order(evaluator, a, b, f, width);
  const BitShares far =
      evaluator.most_significant_bit(room(evaluator, operands.distance, q + 1, f), e_bits);
  const int shift_bits = std::bit_width(static_cast<unsigned>(q + 1));
  const u64 most = static_cast<u64>(q) + 1;
  const RingShares digits =
      digits_of(evaluator, operands.distance, shift_bits, [&](u64 d) { return most - d; });
  const RingShares aligned = evaluator.truncate_reduce(
      shift_left(evaluator, operands.smaller, digits, shift_bits, width), width, q + 1);
  const RingShares taken = evaluator.select(operands.opposite, aligned, q + 1);
  const NormalizedShares sum = normalize(
      evaluator,
      evaluator.map(n, q + 2,
                    [&](i64 i) { return operands.larger[i] + aligned[i] - 2 * taken[i]; }),
      q + 2, e_bits);
  const RingShares mantissa = evaluator.halve(sum.mantissa, q + 2);
  const u64 scale = evaluator.constant(static_cast<u64>(q));
  const RingShares exponent =
      evaluator.map(n, e_bits, [&](i64 i) { return operands.exponent[i] + sum.place[i] - scale; });
  const RingShares pairs = interleaved(
      evaluator, evaluator.map(n, q + 1, [&](i64 i) { return operands.larger[i] - mantissa[i]; }),
      evaluator.map(n, e_bits, [&](i64 i) { return operands.exponent[i] - exponent[i]; }));
  const RingShares zero = evaluator.map(n, 1, [&](i64 i) { return sum.zero[i]; });
  const Selected chosen = evaluator.select({{far, pairs, 2, pair_width(f)}, {far, zero, 1, 1}}, {});
  const RingShares& moved = chosen.selections[0];
  FloatShares out{evaluator.map_bits(n, [&](i64 i) { return zero[i] ^ chosen.selections[1][i]; }),
                  operands.sign, exponents_of(evaluator, moved, f),
                  mantissas_of(evaluator, moved, f)};
  evaluator.local(n, [&](i64 i) {
    out.exponent[i] = (out.exponent[i] + exponent[i]) & low_mask(e_bits);
    out.mantissa[i] = (out.mantissa[i] + mantissa[i]) & low_mask(q + 1);
  });
  return out;
}

namespace {

using Operation = FloatShares (*)(Evaluator&, const FloatShares&, const FloatShares&, FloatFormat);

void run_operation(Party& party, FloatView a, FloatView b, FloatFormat f, FloatSpan out,
                   Operation operation) {
  expect_float_format(f, kMostMantissa);
  expect(a.size() == b.size() && a.size() == out.size(), "floating-point sum: lengths differ");
  evaluate_binary(party, a, b, f, out,
                  [&](Evaluator& evaluator, const FloatShares& x, const FloatShares& y) {
                    return operation(evaluator, x, y, f);
                  });
}

void cost_operation(CostMeter& meter, i64 n, FloatFormat f, Operation operation) {
  cost_binary(meter, n, f, [&](Evaluator& evaluator, const FloatShares& x, const FloatShares& y) {
    operation(evaluator, x, y, f);
  });
}

FloatShares subtract_floats(Evaluator& evaluator, const FloatShares& a, const FloatShares& b,
                            FloatFormat f) {
  FloatShares negative = b;
  negative.sign = evaluator.negated(b.sign);
  return add_floats(evaluator, a, negative, f);
}

}  // namespace

void float_add(Party& party, FloatView a, FloatView b, FloatFormat f, FloatSpan out) {
  run_operation(party, a, b, f, out, add_floats);
}

void cost_float_add(CostMeter& meter, i64 n, FloatFormat f) {
  cost_operation(meter, n, f, add_floats);
}

void float_subtract(Party& party, FloatView a, FloatView b, FloatFormat f, FloatSpan out) {
  run_operation(party, a, b, f, out, subtract_floats);
}

void cost_float_subtract(CostMeter& meter, i64 n, FloatFormat f) { cost_float_add(meter, n, f); }

void float_cheap_add(Party& party, FloatView a, FloatView b, FloatFormat f, FloatSpan out) {
  run_operation(party, a, b, f, out, cheap_add_floats);
}

void cost_float_cheap_add(CostMeter& meter, i64 n, FloatFormat f) {
  cost_operation(meter, n, f, cheap_add_floats);
}

}  // namespace privml
