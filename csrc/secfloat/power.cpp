// SPDX-License-Identifier: Apache-2.0
#include "secfloat/power.h"

#include "secfloat/conversion.h"
#include "secfloat/division.h"
#include "secfloat/multiplication.h"
#include "secfloat/operation.h"

namespace privml {
namespace {

void check(int exponent, FloatFormat f) {
  expect_float_format(f, 23);
  expect(std::abs(exponent) <= kMostWholePower, "float_power: exponents lie in -64..64");
}

FloatShares ones(Steps& steps, FloatFormat f) {
  const u64 one = steps.constant(u64{1} << f.mantissa);
  const BitShares none = steps.map_bits(steps.n, [](i64) { return u8{0}; });
  return {none, none, steps.map(steps.n, 64, [](i64) { return u64{0}; }),
          steps.map(steps.n, 64, [&](i64) { return one; })};
}

FloatShares power_steps(Steps& steps, const FloatShares& a, int exponent, FloatFormat f) {
  if (exponent == 0) return ones(steps, f);
  const FloatFormat wide = power_format(f);
  const FloatShares x = cast_floats(steps, a, f, wide);
  FloatShares r = x;
  const unsigned size = static_cast<unsigned>(std::abs(exponent));
  for (int bit = static_cast<int>(std::bit_width(size)) - 2; bit >= 0; --bit) {
    r = multiply_floats(steps, r, r, wide);
    if ((size >> bit) & 1) r = multiply_floats(steps, r, x, wide);
  }
  if (exponent > 0) return cast_floats(steps, r, wide, f);
  const FloatFormat inverse = inverse_power_format(f);
  const FloatShares quotient =
      divide_floats(steps, ones(steps, inverse), cast_floats(steps, r, wide, inverse), inverse);
  return cast_floats(steps, quotient, inverse, f);
}

}  // namespace

void float_power(Party& party, FloatView a, int exponent, FloatFormat f, FloatSpan out) {
  check(exponent, f);
  expect(a.size() == out.size(), "float_power: lengths differ");
  run_unary_steps(party, a, f, out, [&](Steps& steps, const FloatShares& x) {
    return power_steps(steps, x, exponent, f);
  });
}

void cost_float_power(CostMeter& meter, i64 n, int exponent, FloatFormat f) {
  check(exponent, f);
  cost_unary_steps(meter, n, f,
                   [&](Steps& steps, const FloatShares& x) { power_steps(steps, x, exponent, f); });
}

}  // namespace privml
