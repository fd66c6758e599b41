// SPDX-License-Identifier: Apache-2.0
#include "functions/float/dot.h"

#include <bit>

#include "functions/float/shares.h"

namespace privml::floating {
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

functions::RingShares part(const functions::Evaluator& evaluator, std::span<const u64> x, i64 begin,
                           int bits) {
  return evaluator.map(evaluator.n, bits, [&](i64 i) { return x[begin + i]; });
}

}  // namespace

void float_align(ot::Party& party, FloatView a, std::span<const u64> shifts, FloatFormat f,
                 int guard, int bits, std::span<u64> out) {
  expect_align(f, guard, bits);
  expect(a.size() == std::ssize(shifts) && shifts.size() == out.size(),
         "float_align: lengths differ");
  functions::evaluate_chunks(
      party, a.size(), kFloatChunk, [&](functions::Evaluator& evaluator, i64 begin) {
        const functions::RingShares aligned =
            align_floats(evaluator, load_floats(evaluator, a, f, begin),
                         part(evaluator, shifts, begin, f.exponent_bits()), f, guard, bits);
        evaluator.local(evaluator.n, [&](i64 i) { out[begin + i] = aligned[i]; });
      });
}

void cost_float_align(ot::CostMeter& meter, i64 n, FloatFormat f, int guard, int bits) {
  expect_align(f, guard, bits);
  functions::cost_chunks(meter, n, kFloatChunk, [&](functions::Evaluator& evaluator, i64) {
    align_floats(evaluator, load_floats(evaluator, {}, f, 0), evaluator.ring(evaluator.n), f, guard,
                 bits);
  });
}

void float_from_sum(ot::Party& party, std::span<const u64> sums, std::span<const u64> exponents,
                    FloatFormat f, int bits, int fraction, FloatSpan out) {
  expect_from_sum(f, bits, fraction);
  expect(sums.size() == exponents.size() && std::ssize(sums) == out.size(),
         "float_from_sum: lengths differ");
  functions::evaluate_chunks(
      party, std::ssize(sums), kFloatChunk, [&](functions::Evaluator& evaluator, i64 begin) {
        store_floats(
            evaluator,
            float_of_sum(evaluator, part(evaluator, sums, begin, bits),
                         part(evaluator, exponents, begin, f.exponent_bits()), f, bits, fraction),
            out, begin);
      });
}

void cost_float_from_sum(ot::CostMeter& meter, i64 n, FloatFormat f, int bits, int fraction) {
  expect_from_sum(f, bits, fraction);
  functions::cost_chunks(meter, n, kFloatChunk, [&](functions::Evaluator& evaluator, i64) {
    float_of_sum(evaluator, evaluator.ring(evaluator.n), evaluator.ring(evaluator.n), f, bits,
                 fraction);
  });
}

}  // namespace privml::floating
