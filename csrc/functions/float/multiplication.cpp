// SPDX-License-Identifier: Apache-2.0
#include "functions/float/multiplication.h"

#include "functions/float/operation.h"
#include "functions/float/pair_table.h"

namespace privml {
namespace {

constexpr int kMostMantissa = 31;

// x' = product + 2^(q-1), x~ its complement. A digit: three bits of a share of x~ from place q - 1
// on, and shares of the carry into them, of "all ones below", and of the top bit of x~ (1 if
// the product is the shorter one). The bit that the result's shares lack: the carry out of the cut
// bits, or 1 for a tie that would round to odd. Party 0 cuts the longer product after taking
// another 2^(q-1) off x~.
u64 rounding_entry(int digit0, int digit1) {
  const int r0 = digit0 & 7, r1 = digit1 & 7, both = digit0 ^ digit1;
  const int carry = (both >> 3) & 1, exact = (both >> 4) & 1, shorter = (both >> 5) & 1;
  const int y = 7 - ((r0 + r1 + carry) & 7);
  if (shorter) {
    const int carried = ((r0 & 1) + (r1 & 1) + carry) >> 1;
    return static_cast<u64>(carried ^ (exact & ((y & 3) == 2 ? 1 : 0)));
  }
  const int carried = (((r0 - 1) & 3) + (r1 & 3) + carry) >> 2;
  return static_cast<u64>(carried ^ (exact & (y == 3 ? 1 : 0)));
}

FloatShares rounded_product(Evaluator& evaluator, const FloatShares& a, const FloatShares& b,
                            const RingShares& product, FloatFormat f) {
  const int q = f.mantissa, bits = 2 * q + 2;
  const i64 n = evaluator.n;
  const RingShares c = complement(evaluator, product, u64{1} << (q - 1), bits);
  const Carries carries = evaluator.carries(c, bits - 1, q - 1, true);
  const BitShares longer = evaluator.negated(
      evaluator.map_bits(n, [&](i64 i) { return (c[i] >> (bits - 1)) ^ carries.all[i]; }));
  BitShares digits = evaluator.bits(n);
  evaluator.local(n, [&](i64 i) {
    const u64 shorter = longer[i] ^ evaluator.constant(1);
    digits[i] = static_cast<u8>(((c[i] >> (q - 1)) & 7) | u64{carries.low[i]} << 3 |
                                u64{carries.low_ones[i]} << 4 | shorter << 5);
  });
  const RingShares entry = pair_table(evaluator, digits, 6, 1, rounding_entry);
  const BitShares bit = evaluator.map_bits(n, [&](i64 i) { return entry[i]; });
  const u64 taken = evaluator.constant(u64{1} << (q - 1));
  const auto cut_short = [&](i64 i) { return c[i] >> q; };
  const RingShares difference = evaluator.map(n, q + 1, [&](i64 i) {
    return (((c[i] - taken) & low_mask(bits)) >> (q + 1)) - cut_short(i);
  });
  const Selected chosen = evaluator.select({{longer, difference, 1, q + 1}},
                                           {{bit, q + 1}, {longer, f.exponent_bits()}});
  const u64 minus_one = evaluator.constant(~u64{0});
  FloatShares out{evaluator.or_bits(a.zero, b.zero), evaluator.bits(n), evaluator.ring(n),
                  evaluator.ring(n)};
  out.sign = evaluator.map_bits(n, [&](i64 i) { return a.sign[i] ^ b.sign[i]; });
  out.exponent = evaluator.map(n, f.exponent_bits(), [&](i64 i) {
    return a.exponent[i] + b.exponent[i] + chosen.conversions[1][i];
  });
  out.mantissa = evaluator.map(n, q + 1, [&](i64 i) {
    return minus_one - cut_short(i) - chosen.selections[0][i] - chosen.conversions[0][i];
  });
  return out;
}

}  // namespace

FloatShares multiply_floats_unchecked(Evaluator& evaluator, const FloatShares& a,
                                      const FloatShares& b, FloatFormat f) {
  FactorFormat factor{f.mantissa_bits(), false};
  factor.shared_msb = true;
  const BitShares a_top = evaluator.negated(a.zero), b_top = evaluator.negated(b.zero);
  const RingShares product = evaluator.multiply(a.mantissa, factor, b.mantissa, factor,
                                                2 * f.mantissa_bits(), &a_top, &b_top);
  return rounded_product(evaluator, a, b, product, f);
}

// The other parts of a zero product are meaningless; the check replaces them.
FloatShares multiply_floats(Evaluator& evaluator, const FloatShares& a, const FloatShares& b,
                            FloatFormat f) {
  FactorFormat factor{f.mantissa_bits(), false};
  factor.negative = true;
  const RingShares product =
      evaluator.multiply(a.mantissa, factor, b.mantissa, factor, 2 * f.mantissa_bits());
  return check_float(evaluator, rounded_product(evaluator, a, b, product, f), f);
}

void float_multiply(Party& party, FloatView a, FloatView b, FloatFormat f, FloatSpan out) {
  expect_float_format(f, kMostMantissa);
  expect(a.size() == b.size() && a.size() == out.size(), "float_multiply: lengths differ");
  evaluate_binary(party, a, b, f, out,
                  [&](Evaluator& evaluator, const FloatShares& x, const FloatShares& y) {
                    return multiply_floats(evaluator, x, y, f);
                  });
}

void cost_float_multiply(CostMeter& meter, i64 n, FloatFormat f) {
  cost_binary(meter, n, f, [&](Evaluator& evaluator, const FloatShares& x, const FloatShares& y) {
    multiply_floats(evaluator, x, y, f);
  });
}

}  // namespace privml
