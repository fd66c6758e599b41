// SPDX-License-Identifier: Apache-2.0
#include "secfloat/addition.h"

#include <bit>

namespace privml {
namespace {

constexpr int kMostMantissa = 30;

// The operands in order of magnitude, and what follows.
struct Ordered {
  FloatShares larger;    // all but its zero bit
  RingShares smaller;    // its mantissa
  RingShares distance;   // of exponents, >= 0
  BitShares larger_top;  // top bits of the mantissas
  BitShares smaller_top;
  BitShares opposite;  // signs differ
};

Ordered order(Steps& steps, const FloatShares& a, const FloatShares& b, FloatFormat f) {
  const i64 n = steps.n;
  const int width = f.exponent + f.mantissa + 2;
  const RingShares both = magnitudes(steps, a, b, f, width);
  const BitShares less = steps.most_significant_bit(
      steps.map(n, width, [&](i64 i) { return both[i] - both[n + i]; }), width);
  const RingShares pairs = interleaved(
      steps, steps.map(n, f.mantissa_bits(), [&](i64 i) { return b.mantissa[i] - a.mantissa[i]; }),
      steps.map(n, f.exponent_bits(), [&](i64 i) { return b.exponent[i] - a.exponent[i]; }));
  const RingShares moved = steps.select(less, pairs, pair_width(f));
  const BitShares opposite = steps.map_bits(n, [&](i64 i) { return a.sign[i] ^ b.sign[i]; });
  // [larger is zero] = both are; [smaller is zero] = one is.
  const BitShares products = steps.and_bits(joined(less, a.zero), joined(opposite, b.zero));
  const RingShares exponents = exponents_of(steps, moved, f),
                   mantissas = mantissas_of(steps, moved, f);
  Ordered out{{part_of(products, n, 1), a.sign, steps.ring(n), steps.ring(n)},
              steps.ring(n),
              steps.ring(n),
              steps.bits(n),
              steps.bits(n),
              opposite};
  const u64 m = low_mask(f.mantissa_bits()), e = low_mask(f.exponent_bits());
  steps.local(n, [&](i64 i) {
    const u8 both_zero = products[n + i];
    out.larger.sign[i] ^= products[i];
    out.larger.exponent[i] = (a.exponent[i] + exponents[i]) & e;
    out.larger.mantissa[i] = (a.mantissa[i] + mantissas[i]) & m;
    out.smaller[i] = (b.mantissa[i] - mantissas[i]) & m;
    out.distance[i] = (a.exponent[i] - b.exponent[i] + 2 * exponents[i]) & e;
    out.larger_top[i] = both_zero;
    out.smaller_top[i] = a.zero[i] ^ b.zero[i] ^ both_zero;
  });
  out.larger_top = steps.negated(out.larger_top);
  out.smaller_top = steps.negated(out.smaller_top);
  return out;
}

// [distance > most].
BitShares beyond(Steps& steps, const RingShares& distance, int most, FloatFormat f) {
  const u64 limit = steps.constant(static_cast<u64>(most));
  return steps.most_significant_bit(
      steps.map(steps.n, f.exponent_bits(), [&](i64 i) { return limit - distance[i]; }),
      f.exponent_bits());
}

// Digits of the shift `of(distance)` for distances below 2^shift_bits.
template <class Of>
RingShares digits_of(Steps& steps, const RingShares& distance, int shift_bits, Of&& of) {
  std::vector<u64> table(u64{1} << shift_bits);
  for (u64 d = 0; d < table.size(); ++d) {
    table[d] = shift_digits(of(d) & low_mask(shift_bits), shift_bits);
  }
  const RingShares index = steps.map(steps.n, shift_bits, [&](i64 i) { return distance[i]; });
  return steps.lookup_xor(table, index, shift_bits, shift_digits_width(shift_bits));
}

// x or -x.
RingShares signed_by(Steps& steps, const BitShares& negative, const RingShares& x, int width) {
  const RingShares taken = steps.select(negative, x, width - 1);
  return steps.map(steps.n, width, [&](i64 i) { return x[i] - 2 * taken[i]; });
}

FloatShares far_or(Steps& steps, const BitShares& far, const FloatShares& near,
                   const Ordered& operands, FloatFormat f) {
  const i64 n = steps.n;
  const FloatShares& larger = operands.larger;
  const RingShares pairs = interleaved(
      steps,
      steps.map(n, f.mantissa_bits(), [&](i64 i) { return larger.mantissa[i] - near.mantissa[i]; }),
      steps.map(n, f.exponent_bits(),
                [&](i64 i) { return larger.exponent[i] - near.exponent[i]; }));
  const RingShares chosen = steps.select(far, pairs, pair_width(f));
  FloatShares out{near.zero, near.sign, exponents_of(steps, chosen, f),
                  mantissas_of(steps, chosen, f)};
  steps.local(n, [&](i64 i) {
    out.exponent[i] = (out.exponent[i] + near.exponent[i]) & low_mask(f.exponent_bits());
    out.mantissa[i] = (out.mantissa[i] + near.mantissa[i]) & low_mask(f.mantissa_bits());
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

RingShares shift_left(Steps& steps, const RingShares& x, const RingShares& digits, int shift_bits,
                      int width) {
  const i64 n = x.count;
  RingShares out = x;
  for (int digit = 0; 2 * digit < shift_bits; ++digit) {
    const int step = 1 << (2 * digit), choices = 2 * digit + 1 < shift_bits ? 3 : 1;
    // Choice k = 1..3 adds (2^(k step) - 1) x.
    BitShares bits = steps.bits(n * choices);
    RingShares values = steps.ring(n * choices);
    steps.local(n, [&](i64 i) {
      for (int k = 1; k <= choices; ++k) {
        const int shift = k * step;
        bits[(k - 1) * n + i] = static_cast<u8>((digits[i] >> (3 * digit + k - 1)) & 1);
        values[(k - 1) * n + i] = (shift < 64 ? out[i] << shift : 0) - out[i];
      }
    });
    const RingShares added = steps.select(bits, values, width);
    steps.local(n, [&](i64 i) {
      for (int k = 0; k < choices; ++k) out[i] += added[k * n + i];
      out[i] &= low_mask(width);
    });
  }
  return out;
}

NormalizedShares normalize(Steps& steps, const RingShares& x, int bits, int place_width) {
  const i64 n = x.count;
  const int shift_bits = std::bit_width(static_cast<unsigned>(bits - 1));
  const BitShares one_hot = steps.most_significant_nonzero_bit(x, bits);
  std::vector<u64> places(bits), shifts(bits), ones(bits, 1);
  for (int place = 0; place < bits; ++place) {
    places[place] = static_cast<u64>(place);
    shifts[place] = shift_digits(static_cast<u64>(bits - 1 - place), shift_bits);
  }
  const RingShares nonzero = steps.one_hot_select(one_hot, ones);
  NormalizedShares out;
  out.zero = steps.negated(steps.map_bits(n, [&](i64 i) { return nonzero[i]; }));
  out.place = steps.word_to_ring(steps.one_hot_select(one_hot, places), shift_bits, place_width);
  out.mantissa = shift_left(steps, x, steps.one_hot_select(one_hot, shifts), shift_bits, bits);
  return out;
}

FloatShares add_floats(Steps& steps, const FloatShares& a, const FloatShares& b, FloatFormat f) {
  const i64 n = steps.n;
  const int q = f.mantissa, width = 2 * q + 3;
  const Ordered operands = order(steps, a, b, f);
  const BitShares far = beyond(steps, operands.distance, q + 2, f);
  const int shift_bits = std::bit_width(static_cast<unsigned>(q + 2));
  const RingShares digits =
      digits_of(steps, operands.distance, shift_bits, [](u64 d) { return d; });
  const RingShares extended =
      steps.extend_shared_msb(joined(operands.larger.mantissa, operands.smaller), q + 1,
                              joined(operands.larger_top, operands.smaller_top), width);
  const RingShares smaller = signed_by(steps, operands.opposite, part_of(extended, n, 1), width);
  const RingShares larger = shift_left(steps, part_of(extended, n, 0), digits, shift_bits, width);
  const NormalizedShares sum =
      normalize(steps, steps.map(n, width, [&](i64 i) { return larger[i] + smaller[i]; }), width,
                f.exponent_bits());
  const RoundedShares rounded = round_mantissa_shares(steps, sum.mantissa, width, q);
  const RingShares carry = steps.to_ring(rounded.carry, f.exponent_bits());
  // An exact zero is negative only where both operands are; the larger one's sign says it.
  const BitShares zero = steps.and_bits(sum.zero, steps.negated(far));
  const BitShares cancelled = steps.and_bits(zero, operands.opposite);
  const u64 scale = steps.constant(static_cast<u64>(q));
  FloatShares near{zero, steps.and_bits(operands.larger.sign, steps.negated(cancelled)),
                   steps.ring(n), rounded.mantissa};
  near.exponent = steps.map(n, f.exponent_bits(), [&](i64 i) {
    return operands.larger.exponent[i] - operands.distance[i] + sum.place[i] + carry[i] - scale;
  });
  return check_float(steps, far_or(steps, far, near, operands, f), f);
}

FloatShares cheap_add_floats(Steps& steps, const FloatShares& a, const FloatShares& b,
                             FloatFormat f) {
  const i64 n = steps.n;
  const int q = f.mantissa, width = 2 * q + 3;
  const Ordered operands = order(steps, a, b, f);
  const BitShares far = beyond(steps, operands.distance, q + 1, f);
  const int shift_bits = std::bit_width(static_cast<unsigned>(q + 1));
  const u64 most = static_cast<u64>(q) + 1;
  const RingShares digits =
      digits_of(steps, operands.distance, shift_bits, [&](u64 d) { return most - d; });
  const RingShares wide =
      steps.extend_shared_msb(operands.smaller, q + 1, operands.smaller_top, width);
  const RingShares aligned =
      steps.truncate_reduce(shift_left(steps, wide, digits, shift_bits, width), width, q + 1);
  const RingShares smaller = signed_by(steps, operands.opposite, aligned, q + 2);
  const RingShares larger =
      steps.extend_shared_msb(operands.larger.mantissa, q + 1, operands.larger_top, q + 2);
  const NormalizedShares sum =
      normalize(steps, steps.map(n, q + 2, [&](i64 i) { return larger[i] + smaller[i]; }), q + 2,
                f.exponent_bits());
  const u64 scale = steps.constant(static_cast<u64>(q));
  FloatShares near{steps.and_bits(sum.zero, steps.negated(far)), operands.larger.sign,
                   steps.ring(n), steps.truncate_reduce(sum.mantissa, q + 2, 1)};
  near.exponent = steps.map(n, f.exponent_bits(), [&](i64 i) {
    return operands.larger.exponent[i] + sum.place[i] - scale;
  });
  return far_or(steps, far, near, operands, f);
}

namespace {

using Operation = FloatShares (*)(Steps&, const FloatShares&, const FloatShares&, FloatFormat);

void run_operation(Party& party, FloatView a, FloatView b, FloatFormat f, FloatSpan out,
                   bool negated, Operation operation) {
  expect_float_format(f, kMostMantissa);
  expect(a.size() == b.size() && a.size() == out.size(), "floating-point sum: lengths differ");
  run_steps(party, a.size(), [&](Steps& steps, i64 begin) {
    FloatShares second = steps.load(b, f, begin);
    if (negated) second.sign = steps.negated(second.sign);
    steps.store(operation(steps, steps.load(a, f, begin), second, f), out, begin);
  });
}

void cost_operation(CostMeter& meter, i64 n, FloatFormat f, Operation operation) {
  cost_steps(meter, n, [&](Steps& steps, i64) {
    const FloatShares none = steps.load({}, f, 0);
    operation(steps, none, none, f);
  });
}

}  // namespace

void float_add(Party& party, FloatView a, FloatView b, FloatFormat f, FloatSpan out) {
  run_operation(party, a, b, f, out, false, add_floats);
}

void cost_float_add(CostMeter& meter, i64 n, FloatFormat f) {
  cost_operation(meter, n, f, add_floats);
}

void float_subtract(Party& party, FloatView a, FloatView b, FloatFormat f, FloatSpan out) {
  run_operation(party, a, b, f, out, true, add_floats);
}

void cost_float_subtract(CostMeter& meter, i64 n, FloatFormat f) { cost_float_add(meter, n, f); }

void float_cheap_add(Party& party, FloatView a, FloatView b, FloatFormat f, FloatSpan out) {
  run_operation(party, a, b, f, out, false, cheap_add_floats);
}

void cost_float_cheap_add(CostMeter& meter, i64 n, FloatFormat f) {
  cost_operation(meter, n, f, cheap_add_floats);
}

}  // namespace privml
