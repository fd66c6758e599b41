// SPDX-License-Identifier: Apache-2.0
#include "functions/float/dot.h"

#include "functions/float/clear_conversion.h"
#include "functions/float/testing/functions.h"

namespace privml::floating {
namespace {

using namespace floating::testing;
using namespace twopc::testing;

Both<std::vector<u64>> additive(const std::vector<i64>& values, int bits, u64 seed) {
  std::mt19937_64 random(seed);
  Both<std::vector<u64>> shares;
  for (const i64 value : values) {
    const u64 first = random() & low_mask(bits);
    shares[0].push_back(first);
    shares[1].push_back((static_cast<u64>(value) - first) & low_mask(bits));
  }
  return shares;
}

void expect_aligned(const Values& values, const std::vector<i64>& shifts, FloatFormat f, int guard,
                    int bits, const OtKind& ot = {}) {
  SCOPED_TRACE(::testing::Message() << "(" << f.exponent << ", " << f.mantissa << "), guard "
                                    << guard << ", ring " << bits);
  const i64 n = std::ssize(values);
  const Both<std::vector<u64>> out =
      results_of(float_align(f, guard, bits), n, ot, share_floats(values, f, 5),
                 additive(shifts, f.exponent_bits(), 6));
  for (i64 i = 0; i < n; ++i) {
    ASSERT_EQ(to_signed(out[0][i] + out[1][i], bits),
              clear_float_align(values[i], shifts[i], f, guard))
        << ::testing::PrintToString(values[i]) << " by " << shifts[i];
  }
}

TEST(FloatAlign, EveryValueAndShiftOfASmallFormat) {
  const FloatFormat f{4, 3};
  Values values;
  std::vector<i64> shifts;
  for_all_values(f, [&](FloatValue v) {
    for (i64 shift = 0; shift < 32; ++shift) {
      values.push_back(v);
      shifts.push_back(shift);
    }
  });
  for (const int guard : {0, 2}) expect_aligned(values, shifts, f, guard, 12);
  expect_aligned(values, shifts, f, 0, 5);
}

TEST(FloatAlign, RandomValuesOfUsualFormats) {
  for (const FloatFormat f : {FloatFormat{8, 23}, FloatFormat{8, 7}, FloatFormat{8, 10}}) {
    const Pairs pairs = random_pairs(3000, f, 7);
    std::mt19937_64 random(8);
    std::vector<i64> shifts;
    for (std::size_t i = 0; i < pairs.a.size(); ++i) {
      const i64 near = static_cast<i64>(random() % (f.mantissa + 6));
      shifts.push_back(random() % 8 == 0 ? static_cast<i64>(random() % 511) : near);
    }
    expect_aligned(pairs.a, shifts, f, 2, 64);
    expect_aligned(pairs.a, shifts, f, 2, 61, {false, 4});
  }
}

void expect_floats_of_sums(const std::vector<i64>& sums, const std::vector<i64>& exponents,
                           FloatFormat f, int bits, int fraction, const OtKind& ot = {}) {
  SCOPED_TRACE(::testing::Message() << "(" << f.exponent << ", " << f.mantissa << "), ring " << bits
                                    << ", fraction " << fraction);
  const i64 n = std::ssize(sums);
  const Values results = reconstruct_floats(
      results_of(float_from_sum(f, bits, fraction), n, ot, additive(sums, bits, 9),
                 additive(exponents, f.exponent_bits(), 10)),
      f);
  for (i64 i = 0; i < n; ++i) {
    ASSERT_EQ(results[i], clear_float_from_sum(sums[i], exponents[i], f, fraction))
        << sums[i] << " at " << exponents[i];
  }
}

TEST(FloatFromSum, EverySumAndExponentOfASmallFormat) {
  const FloatFormat f{4, 3};
  std::vector<i64> sums, exponents;
  for (i64 sum = -255; sum < 256; ++sum) {
    for (i64 exponent = -14; exponent <= 16; ++exponent) {
      sums.push_back(sum);
      exponents.push_back(exponent);
    }
  }
  for (const int fraction : {0, 7}) expect_floats_of_sums(sums, exponents, f, 9, fraction);
}

TEST(FloatFromSum, RandomSumsOfUsualFormats) {
  std::mt19937_64 random(11);
  for (const FloatFormat f : {FloatFormat{8, 23}, FloatFormat{8, 7}}) {
    const int bits = 2 * f.mantissa + 14, fraction = 2 * f.mantissa + 4;
    std::vector<i64> sums, exponents;
    for (int i = 0; i < 4000; ++i) {
      const int size = static_cast<int>(random() % bits);
      const i64 sum = static_cast<i64>(random() & low_mask(size));
      sums.push_back(random() % 2 ? -sum : sum);
      exponents.push_back(static_cast<i64>(random() % 511) - 254);
    }
    expect_floats_of_sums(sums, exponents, f, bits, fraction);
    expect_floats_of_sums(sums, exponents, f, 64, fraction, {false, 4});
  }
}

// The bound of dot.h, on products of blocks with exponents of any spread, in the clear.
TEST(FloatDot, ErrorIsWithinTheBound) {
  const FloatFormat f{8, 23};
  const int guard = 2, n = 500;
  std::mt19937_64 random(12);
  for (int run = 0; run < 200; ++run) {
    const int spread = 1 + run % 40;
    i64 sum = 0;
    long double exact = 0;
    std::vector<FloatValue> a, b;
    i64 top_a = -1000, top_b = -1000;
    for (int i = 0; i < n; ++i) {
      for (auto* values : {&a, &b}) {
        const int exponent = -static_cast<int>(random() % spread);
        values->push_back(
            {false, (random() & 1) != 0, exponent, (u64{1} << 23) + random() % (u64{1} << 23)});
      }
      top_a = std::max<i64>(top_a, a[i].exponent);
      top_b = std::max<i64>(top_b, b[i].exponent);
      exact += static_cast<long double>(double_from_value(a[i], f)) *
               static_cast<long double>(double_from_value(b[i], f));
    }
    for (int i = 0; i < n; ++i) {
      sum += clear_float_align(a[i], top_a - a[i].exponent, f, guard) *
             clear_float_align(b[i], top_b - b[i].exponent, f, guard);
    }
    const double unit = std::ldexp(1.0, static_cast<int>(top_a + top_b) - f.mantissa - guard);
    const FloatValue result = clear_float_from_sum(sum, top_a + top_b, f, 2 * (f.mantissa + guard));
    const long double error = std::abs(double_from_value(result, f) - exact);
    EXPECT_LE(error, 4 * n * unit + std::abs(exact) * 0x1p-24L);
  }
}

}  // namespace
}  // namespace privml::floating
