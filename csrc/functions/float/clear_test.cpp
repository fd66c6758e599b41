// SPDX-License-Identifier: Apache-2.0
#include "functions/float/clear.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "functions/float/clear_conversion.h"
#include "functions/float/testing/reference.h"
#include "functions/float/word.h"

namespace privml::floating {
namespace {

using testing::for_all_values;
using testing::round_double;

constexpr FloatFormat kSmall{4, 3};

std::vector<FloatValue> all_values(FloatFormat f) {
  std::vector<FloatValue> values;
  for_all_values(f, [&](FloatValue v) { values.push_back(v); });
  return values;
}

TEST(ClearFloat, AllPairsOfASmallFormat) {
  for (const FloatFormat f : {kSmall, FloatFormat{4, 4}, FloatFormat{3, 2}}) {
    const auto values = all_values(f);
    for (const FloatValue a : values) {
      const double x = double_from_value(a, f);
      for (const FloatValue b : values) {
        const double y = double_from_value(b, f);
        const auto where = ::testing::Message() << x << " and " << y;
        ASSERT_EQ(clear_float_multiply(a, b, f), round_double(x * y, f)) << where;
        ASSERT_EQ(clear_float_add(a, b, f), round_double(x + y, f)) << where;
        ASSERT_EQ(clear_float_subtract(a, b, f), round_double(x - y, f)) << where;
        const double quotient = a.zero ? (a.sign != b.sign ? -0.0 : 0.0) : x / y;
        ASSERT_EQ(clear_float_divide(a, b, f), round_double(quotient, f)) << where;
        ASSERT_EQ(clear_float_less_than(a, b), x < y) << where;
        ASSERT_EQ(clear_float_less_equal(a, b), x <= y) << where;
        ASSERT_EQ(clear_float_equal(a, b), x == y) << where;
        ASSERT_EQ(double_from_value(clear_float_maximum(a, b), f), std::max(x, y)) << where;
      }
    }
  }
}

TEST(ClearFloat, UnaryOperationsOnAllOfASmallFormat) {
  for (const FloatFormat f : {kSmall, FloatFormat{5, 10}, FloatFormat{8, 7}}) {
    for_all_values(f, [&](FloatValue a) {
      const double x = double_from_value(a, f);
      ASSERT_EQ(clear_float_negate(a), round_double(-x, f));
      ASSERT_EQ(clear_float_absolute(a), round_double(std::fabs(x), f));
      ASSERT_EQ(clear_float_relu(a, f), round_double(x > 0 ? x : 0.0, f));
      if (!a.sign || a.zero) {
        ASSERT_EQ(clear_float_sqrt(a, f), round_double(std::sqrt(x), f)) << x;
      }
      ASSERT_EQ(clear_float_round_to_integer(a, f), round_double(std::nearbyint(x), f)) << x;
      for (const int scale : {0, 3, 12}) {
        const double scaled = std::nearbyint(std::ldexp(x, scale));
        const double fixed = std::clamp(scaled, -32768.0, 32767.0);
        ASSERT_EQ(clear_float_to_fixed(a, f, 16, scale), static_cast<i64>(fixed)) << x;
      }
      for (const FloatFormat to : {kSmall, FloatFormat{8, 23}, FloatFormat{5, 2}}) {
        ASSERT_EQ(clear_float_cast(a, f, to), round_double(x, to)) << x;
      }
      ASSERT_EQ(value_from_word(word_from_value(a, f), f), a);
    });
  }
}

TEST(ClearFloat, FromFixed) {
  for (const FloatFormat f : {kSmall, FloatFormat{5, 10}, kFloat32}) {
    for (i64 x = -70000; x <= 70000; ++x) {
      for (const int scale : {0, 4, 14}) {
        const double value = std::ldexp(static_cast<double>(x), -scale);
        ASSERT_EQ(clear_float_from_fixed(x, scale, f), round_double(value, f)) << value;
      }
    }
  }
  const FloatValue large = clear_float_from_fixed(i64{1} << 62, 0, kFloat32);
  EXPECT_EQ(clear_float_to_fixed(large, kFloat32, 64, 1), std::numeric_limits<i64>::max());
  EXPECT_EQ(clear_float_to_fixed(clear_float_negate(large), kFloat32, 64, 1),
            std::numeric_limits<i64>::min());
  EXPECT_EQ(clear_float_from_fixed(std::numeric_limits<i64>::min(), 63, kFloat32),
            (FloatValue{false, true, 0, u64{1} << 23}));
}

// Cases that the paper's algorithm gets wrong.
TEST(ClearFloat, AdditionNearThePowersOfTwo) {
  const FloatFormat f = kFloat32;
  const auto value = [](float x) { return value_from_single_bits(std::bit_cast<u32>(x)); };
  EXPECT_EQ(single_bits_from_value(clear_float_add(value(1), value(-0x1.8p-25F), f)), 0x3f7fffff);
  EXPECT_EQ(clear_float_add(value(-3), value(3), f), float_zero(f));
  EXPECT_EQ(clear_float_add(value(-0.0F), value(0.0F), f), float_zero(f));
  EXPECT_EQ(clear_float_add(value(-0.0F), value(-0.0F), f), float_zero(f, true));
}

// m' or m' + 1 is the rounded quotient, m' what the tables and the iteration give.
TEST(ClearFloat, ApproximateQuotients) {
  const auto check = [](int q, u64 m1, u64 m2) {
    if (m1 < m2) m1 *= 2;
    const u64 rounded = static_cast<u64>((((u128{m1} << (q + 1)) / m2) + 1) >> 1);
    const u64 difference = rounded - approximate_quotient(q, m1, m2);
    ASSERT_LE(difference, 1U) << q << ": " << m1 << " / " << m2;
  };
  for (const int q : {2, 3, 7, 10}) {
    for (u64 m1 = u64{1} << q; m1 < u64{2} << q; ++m1) {
      for (u64 m2 = u64{1} << q; m2 < u64{2} << q; ++m2) check(q, m1, m2);
    }
  }
  std::mt19937_64 random(1);
  for (const int q : {11, 12, 13, 14, 15, 23, 27}) {
    const u64 one = u64{1} << q;
    for (int i = 0; i < 300000; ++i) {
      const u64 m2 = one + (i % 3 == 0 ? random() % 64 : random() % one);
      const u64 near = m2 + random() % 16 - 8;
      check(q, i % 2 == 0 ? std::clamp(near, one, 2 * one - 1) : one + random() % one, m2);
    }
  }
}

TEST(ClearFloat, ApproximateRoots) {
  const auto check = [](int q, u64 mantissa, bool odd) {
    const u64 twice = integer_root(u128{mantissa} << (q + 2 + (odd ? 1 : 0)));
    const u64 difference = ((twice + 1) >> 1) - approximate_root(q, mantissa, odd);
    ASSERT_LE(difference, 1U) << q << ": " << mantissa << " " << odd;
  };
  for (const int q : {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}) {
    for (u64 m = u64{1} << q; m < u64{2} << q; ++m) {
      check(q, m, false);
      check(q, m, true);
    }
  }
  std::mt19937_64 random(1);
  for (const int q : {23, 27}) {
    for (int i = 0; i < 300000; ++i) {
      const u64 one = u64{1} << q, small = random() % 64;
      check(q,
            i % 4 == 0   ? one + small
            : i % 4 == 1 ? 2 * one - 1 - small
                         : one + random() % one,
            i & 8);
    }
  }
}

TEST(ClearFloat, WordsOfShares) {
  const FloatFormat f{5, 10};
  std::mt19937_64 random(1);
  std::vector<u64> words(100), back(100);
  for (u64& word : words) word = random() & low_mask(f.word_bits());
  for (const int rank : {0, 1}) {
    FloatVector shares(100);
    unpack_words(words, f, rank, shares);
    pack_words(shares, f, rank, back);
    EXPECT_EQ(back, words);
    const std::vector<u64> zeros(100);
    unpack_words(zeros, f, rank, shares);
    EXPECT_EQ(shares.zero[7], rank == 0);
    EXPECT_EQ(to_signed(shares.exponent[7], 7), rank == 0 ? f.least() - 1 : 0);
  }
}

}  // namespace
}  // namespace privml::floating
