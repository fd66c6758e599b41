// SPDX-License-Identifier: Apache-2.0
#include "functions/float/power.h"

#include <gtest/gtest.h>

#include <cmath>

#include "functions/float/testing/functions.h"

namespace privml::floating {
namespace {

using namespace floating::testing;
using namespace twopc::testing;

Values test_values(FloatFormat f) {
  Values values = random_pairs(300, f, 9).a;
  std::mt19937_64 random(2);
  for (int i = 0; i < 300; ++i)
    values.push_back({false, (random() & 1) != 0, static_cast<int>(random() % 7) - 3,
                      (u64{1} << f.mantissa) | (random() & low_mask(f.mantissa))});
  return values;
}

TEST(FloatPower, EqualsTheTwin) {
  for (const FloatFormat f : {kFloat32, FloatFormat{8, 7}, FloatFormat{5, 10}})
    for (const int exponent : {0, 1, 2, 3, -1, -2, 11, -64}) {
      const Values values = test_values(f);
      const Values got = reconstruct_floats(
          results_of(float_power(exponent, f), std::ssize(values), {}, share_floats(values, f)), f);
      for (std::size_t i = 0; i < got.size(); ++i)
        ASSERT_EQ(got[i], clear_float_power(values[i], exponent, f))
            << exponent << " of " << ::testing::PrintToString(values[i]);
    }
}

TEST(FloatPower, BelowAUnit) {
  for (int exponent = -64; exponent <= 64; ++exponent)
    for (const FloatValue a : test_values(kFloat32)) {
      const long double x = double_from_value(a, kFloat32);
      const long double exact = std::pow(x, static_cast<long double>(exponent));
      const long double size = std::fabs(exact);
      const FloatValue r = clear_float_power(a, exponent, kFloat32);
      if (size < 0x1p-126L || size >= 0x1.fffffep127L || a.zero) continue;
      const long double unit = std::ldexp(1.0L, std::ilogb(size) - 23);
      ASSERT_LT(std::fabs(double_from_value(r, kFloat32) - exact) / unit, 1.0L)
          << exponent << " of " << ::testing::PrintToString(a);
    }
}

TEST(FloatPower, Refusals) { EXPECT_THROW(float_power(65, kFloat32), InvalidArgument); }

}  // namespace
}  // namespace privml::floating
