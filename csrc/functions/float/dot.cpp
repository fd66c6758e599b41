// SPDX-License-Identifier: Apache-2.0
#include "functions/float/dot.h"

#include <bit>

namespace privml::floating {
namespace {

constexpr int kMostBits = 29;  // of mantissa and guard: shifts have at most 5 bits

// [shift <= most].
functions::BitShares within(functions::Evaluator& evaluator, const functions::RingShares& shift,
                            int most, FloatFormat f) {
  const u64 limit = evaluator.constant(static_cast<u64>(most) + 1);
  const int bits = f.exponent_bits();
  return evaluator.most_significant_bit(
      evaluator.map(evaluator.n, bits, [&](i64 i) { return shift[i] - limit; }), bits);
}

// x if the number is positive and kept, -x if it is negative and kept, else 0.
functions::RingShares signed_where(functions::Evaluator& evaluator, const functions::RingShares& x,
                                   const functions::BitShares& sign,
                                   const functions::BitShares& kept, int bits) {
  const functions::BitShares negative = evaluator.and_bits(sign, kept);
  const functions::BitShares positive =
      evaluator.map_bits(evaluator.n, [&](i64 i) { return kept[i] ^ negative[i]; });
  const functions::Selected parts =
      evaluator.select({{positive, x, 1, bits}, {negative, x, 1, bits}}, {});
  return evaluator.map(evaluator.n, bits,
                       [&](i64 i) { return parts.selections[0][i] - parts.selections[1][i]; });
}

functions::RingShares align_floats(functions::Evaluator& evaluator, const FloatShares& a,
                                   const functions::RingShares& shift, FloatFormat f, int guard,
                                   int bits) {
  const int q = f.mantissa, most = q + guard, width = 2 * q + 2 + guard;
  const int shift_bits = std::bit_width(static_cast<unsigned>(most));
  const functions::BitShares kept = within(evaluator, shift, most, f);
  std::vector<u64> table(u64{1} << shift_bits);
  for (u64 d = 0; d < table.size(); ++d) {
    const u64 left = (static_cast<u64>(most) - d) & low_mask(shift_bits);
    table[d] = shift_digits(left, shift_bits);
  }
  const functions::RingShares index =
      evaluator.map(evaluator.n, shift_bits, [&](i64 i) { return shift[i]; });
  const functions::RingShares digits =
      evaluator.lookup_xor(table, index, shift_bits, shift_digits_width(shift_bits));
  const functions::RingShares wide =
      evaluator.extend_shared_msb(a.mantissa, q + 1, evaluator.negated(a.zero), width);
  const functions::RingShares shifted = shift_left(evaluator, wide, digits, shift_bits, width);
  const functions::RingShares magnitude =
      evaluator.extend_nonnegative(evaluator.truncate_reduce(shifted, width, q), width - q, bits);
  return signed_where(evaluator, magnitude, a.sign, kept, bits);
}

FloatShares float_of_sum(functions::Evaluator& evaluator, const functions::RingShares& sum,
                         const functions::RingShares& exponent, FloatFormat f, int bits,
                         int fraction) {
  const i64 n = evaluator.n;
  const int q = f.mantissa, width = f.exponent_bits();
  const functions::BitShares sign = evaluator.most_significant_bit(sum, bits);
  const functions::RingShares taken = evaluator.select(sign, sum, bits - 2);
  const NormalizedShares magnitude =
      normalize(evaluator, evaluator.map(n, bits - 1, [&](i64 i) { return sum[i] - 2 * taken[i]; }),
                bits - 1, width);
  const RoundedShares rounded = round_mantissa_shares(evaluator, magnitude.mantissa, bits - 1, q);
  // A sum of zero does not enter its block's exponent, so that no exponent overflows.
  const functions::Selected chosen = evaluator.select(
      {{evaluator.negated(magnitude.zero), exponent, 1, width}}, {{rounded.carry, width}});
  const u64 scale = evaluator.constant(static_cast<u64>(fraction));
  FloatShares out{magnitude.zero, sign, evaluator.ring(n), rounded.mantissa};
  out.exponent = evaluator.map(n, width, [&](i64 i) {
    return chosen.selections[0][i] + magnitude.place[i] + chosen.conversions[0][i] - scale;
  });
  return check_float(evaluator, out, f);
}

}  // namespace

Operation<functions::RingShares, FloatShares, functions::RingShares> float_align(FloatFormat f,
                                                                                 int guard,
                                                                                 int bits) {
  expect_float_format(f, kMostBits);
  expect(guard >= 0 && f.mantissa + guard <= kMostBits, "float_align: guard bits out of range");
  expect(bits >= f.mantissa + guard + 2 && bits <= 64, "float_align: ring out of range");
  return {{f, f.exponent_bits()}, with(align_floats, f, guard, bits)};
}

Operation<FloatShares, functions::RingShares, functions::RingShares> float_from_sum(FloatFormat f,
                                                                                    int bits,
                                                                                    int fraction) {
  expect_float_format(f, kMostBits);
  expect(bits >= f.mantissa + 3 && bits <= 64, "float_from_sum: ring out of range");
  expect(fraction >= 0 && fraction <= 1 << f.exponent, "float_from_sum: fraction out of range");
  return {{bits, f.exponent_bits()}, with(float_of_sum, f, bits, fraction)};
}

}  // namespace privml::floating
