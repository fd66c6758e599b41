// SPDX-License-Identifier: Apache-2.0
#include "functions/float/power.h"

#include "functions/float/conversion.h"
#include "functions/float/division.h"
#include "functions/float/multiplication.h"

namespace privml::floating {
namespace {

FloatShares ones(functions::Evaluator& evaluator, FloatFormat f) {
  const u64 one = evaluator.constant(u64{1} << f.mantissa);
  const functions::BitShares none = evaluator.map_bits(evaluator.n, [](i64) { return u8{0}; });
  return {none, none, evaluator.map(evaluator.n, 64, [](i64) { return u64{0}; }),
          evaluator.map(evaluator.n, 64, [&](i64) { return one; })};
}

FloatShares power_steps(functions::Evaluator& evaluator, const FloatShares& a, int exponent,
                        FloatFormat f) {
  if (exponent == 0) return ones(evaluator, f);
  const FloatFormat wide = power_format(f);
  const FloatShares x = cast_floats(evaluator, a, f, wide);
  FloatShares r = x;
  const unsigned size = static_cast<unsigned>(std::abs(exponent));
  for (int bit = static_cast<int>(std::bit_width(size)) - 2; bit >= 0; --bit) {
    r = multiply_floats(evaluator, r, r, wide);
    if ((size >> bit) & 1) r = multiply_floats(evaluator, r, x, wide);
  }
  if (exponent > 0) return cast_floats(evaluator, r, wide, f);
  const FloatFormat inverse = inverse_power_format(f);
  const FloatShares quotient = divide_floats(evaluator, ones(evaluator, inverse),
                                             cast_floats(evaluator, r, wide, inverse), inverse);
  return cast_floats(evaluator, quotient, inverse, f);
}

}  // namespace

FloatUnary float_power(int exponent, FloatFormat f) {
  expect_float_format(f, 23);
  expect(std::abs(exponent) <= kMostWholePower, "float_power: exponents lie in -64..64");
  return {{f}, with(power_steps, exponent, f)};
}

}  // namespace privml::floating
