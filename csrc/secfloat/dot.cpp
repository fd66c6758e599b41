// SPDX-License-Identifier: Apache-2.0
#include "secfloat/dot.h"

#include <bit>

#include "secfloat/operation.h"

namespace privml {
namespace {

constexpr int kMostBits = 29;  // of mantissa and guard: shifts have at most 5 bits

void expect_align(FloatFormat f, int guard, int bits) {
  expect_float_format(f, kMostBits);
  expect(guard >= 0 && f.mantissa + guard <= kMostBits, "float_align: guard bits out of range");
  expect(bits >= f.mantissa + guard + 2 && bits <= 64, "float_align: ring out of range");
}

void expect_from_sum(FloatFormat f, int bits, int fraction) {
  expect_float_format(f, kMostBits);
  expect(bits >= f.mantissa + 3 && bits <= 64, "float_from_sum: ring out of range");
  expect(fraction >= 0 && fraction <= 1 << f.exponent, "float_from_sum: fraction out of range");
}

// [shift <= most].
BitShares within(Steps& steps, const RingShares& shift, int most, FloatFormat f) {
  const u64 limit = steps.constant(static_cast<u64>(most) + 1);
  const int bits = f.exponent_bits();
  return steps.most_significant_bit(
      steps.map(steps.n, bits, [&](i64 i) { return shift[i] - limit; }), bits);
}

// x where the number is positive and kept, -x where it is negative and kept, else 0.
RingShares signed_where(Steps& steps, const RingShares& x, const BitShares& sign,
                        const BitShares& kept, int bits) {
  const BitShares negative = steps.and_bits(sign, kept);
  const BitShares positive = steps.map_bits(steps.n, [&](i64 i) { return kept[i] ^ negative[i]; });
  const Selected parts = steps.select({{positive, x, 1, bits}, {negative, x, 1, bits}}, {});
  return steps.map(steps.n, bits,
                   [&](i64 i) { return parts.selections[0][i] - parts.selections[1][i]; });
}

RingShares align_floats(Steps& steps, const FloatShares& a, const RingShares& shift, FloatFormat f,
                        int guard, int bits) {
  const int q = f.mantissa, most = q + guard, width = 2 * q + 2 + guard;
  const int shift_bits = std::bit_width(static_cast<unsigned>(most));
  const BitShares kept = within(steps, shift, most, f);
  std::vector<u64> table(u64{1} << shift_bits);
  for (u64 d = 0; d < table.size(); ++d) {
    const u64 left = (static_cast<u64>(most) - d) & low_mask(shift_bits);
    table[d] = shift_digits(left, shift_bits);
  }
  const RingShares index = steps.map(steps.n, shift_bits, [&](i64 i) { return shift[i]; });
  const RingShares digits =
      steps.lookup_xor(table, index, shift_bits, shift_digits_width(shift_bits));
  const RingShares wide = steps.extend_shared_msb(a.mantissa, q + 1, steps.negated(a.zero), width);
  const RingShares shifted = shift_left(steps, wide, digits, shift_bits, width);
  const RingShares magnitude =
      steps.extend_nonnegative(steps.truncate_reduce(shifted, width, q), width - q, bits);
  return signed_where(steps, magnitude, a.sign, kept, bits);
}

FloatShares float_of_sum(Steps& steps, const RingShares& sum, const RingShares& exponent,
                         FloatFormat f, int bits, int fraction) {
  const i64 n = steps.n;
  const int q = f.mantissa, width = f.exponent_bits();
  const BitShares sign = steps.most_significant_bit(sum, bits);
  const RingShares taken = steps.select(sign, sum, bits - 2);
  const NormalizedShares magnitude = normalize(
      steps, steps.map(n, bits - 1, [&](i64 i) { return sum[i] - 2 * taken[i]; }), bits - 1, width);
  const RoundedShares rounded = round_mantissa_shares(steps, magnitude.mantissa, bits - 1, q);
  // A sum of zero takes no part in its block's exponent, so that none overflows.
  const Selected chosen =
      steps.select({{steps.negated(magnitude.zero), exponent, 1, width}}, {{rounded.carry, width}});
  const u64 scale = steps.constant(static_cast<u64>(fraction));
  FloatShares out{magnitude.zero, sign, steps.ring(n), rounded.mantissa};
  out.exponent = steps.map(n, width, [&](i64 i) {
    return chosen.selections[0][i] + magnitude.place[i] + chosen.conversions[0][i] - scale;
  });
  return check_float(steps, out, f);
}

RingShares part(const Steps& steps, std::span<const u64> x, i64 begin, int bits) {
  return steps.map(steps.n, bits, [&](i64 i) { return x[begin + i]; });
}

}  // namespace

void float_align(Party& party, FloatView a, std::span<const u64> shifts, FloatFormat f, int guard,
                 int bits, std::span<u64> out) {
  expect_align(f, guard, bits);
  expect(a.size() == std::ssize(shifts) && shifts.size() == out.size(),
         "float_align: lengths differ");
  run_steps(party, a.size(), [&](Steps& steps, i64 begin) {
    const RingShares aligned =
        align_floats(steps, steps.load(a, f, begin), part(steps, shifts, begin, f.exponent_bits()),
                     f, guard, bits);
    steps.local(steps.n, [&](i64 i) { out[begin + i] = aligned[i]; });
  });
}

void cost_float_align(CostMeter& meter, i64 n, FloatFormat f, int guard, int bits) {
  expect_align(f, guard, bits);
  cost_steps(meter, n, [&](Steps& steps, i64) {
    align_floats(steps, steps.load({}, f, 0), steps.ring(steps.n), f, guard, bits);
  });
}

void float_from_sum(Party& party, std::span<const u64> sums, std::span<const u64> exponents,
                    FloatFormat f, int bits, int fraction, FloatSpan out) {
  expect_from_sum(f, bits, fraction);
  expect(sums.size() == exponents.size() && std::ssize(sums) == out.size(),
         "float_from_sum: lengths differ");
  run_steps(party, std::ssize(sums), [&](Steps& steps, i64 begin) {
    steps.store(float_of_sum(steps, part(steps, sums, begin, bits),
                             part(steps, exponents, begin, f.exponent_bits()), f, bits, fraction),
                out, begin);
  });
}

void cost_float_from_sum(CostMeter& meter, i64 n, FloatFormat f, int bits, int fraction) {
  expect_from_sum(f, bits, fraction);
  cost_steps(meter, n, [&](Steps& steps, i64) {
    float_of_sum(steps, steps.ring(steps.n), steps.ring(steps.n), f, bits, fraction);
  });
}

}  // namespace privml
