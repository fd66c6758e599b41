// SPDX-License-Identifier: Apache-2.0
#include "functions/float/conversion.h"

#include "functions/float/clear_conversion.h"
#include "functions/float/testing/functions.h"

namespace privml::floating {
namespace {

using namespace floating::testing;
using namespace twopc::testing;

Values all_of(FloatFormat f) {
  Values values;
  for_all_values(f, [&](FloatValue v) { values.push_back(v); });
  return values;
}

void expect_cast(const Values& values, FloatFormat from, FloatFormat to, const OtKind& ot = {}) {
  SCOPED_TRACE(::testing::Message() << "(" << from.exponent << ", " << from.mantissa << ") to ("
                                    << to.exponent << ", " << to.mantissa << ")");
  const i64 n = std::ssize(values);
  const Values results =
      reconstruct_floats(results_of(float_cast(from, to), n, ot, share_floats(values, from)), to);
  for (i64 i = 0; i < n; ++i) {
    ASSERT_EQ(results[i], clear_float_cast(values[i], from, to))
        << ::testing::PrintToString(values[i]);
  }
}

void expect_to_fixed(const Values& values, FloatFormat f, int bits, int scale,
                     const OtKind& ot = {}) {
  SCOPED_TRACE(::testing::Message()
               << "(" << f.exponent << ", " << f.mantissa << ") to " << bits << "." << scale);
  const i64 n = std::ssize(values);
  const Words results =
      reconstruct(results_of(float_to_fixed(f, bits, scale), n, ot, share_floats(values, f)), bits);
  for (i64 i = 0; i < n; ++i) {
    ASSERT_EQ(to_signed(results[i], bits), clear_float_to_fixed(values[i], f, bits, scale))
        << ::testing::PrintToString(values[i]);
  }
}

void expect_from_fixed(const Words& numbers, int bits, int scale, FloatFormat f,
                       const OtKind& ot = {}) {
  SCOPED_TRACE(::testing::Message()
               << bits << "." << scale << " to (" << f.exponent << ", " << f.mantissa << ")");
  const i64 n = std::ssize(numbers);
  Both<Words> x = share(numbers, bits);
  add_noise_above(x, bits);
  const Values results =
      reconstruct_floats(results_of(float_from_fixed(bits, scale, f), n, ot, x), f);
  for (i64 i = 0; i < n; ++i) {
    const i64 number = to_signed(numbers[i], bits);
    ASSERT_EQ(results[i], clear_float_from_fixed(number, scale, f)) << number;
  }
}

TEST(FloatConversion, Casts) {
  const FloatFormat small{4, 3};
  for (const FloatFormat to : {FloatFormat{4, 2}, FloatFormat{5, 3}, FloatFormat{5, 2}, kFloat32,
                               FloatFormat{4, 5}, FloatFormat{3, 2}}) {
    expect_cast(all_of(small), small, to);
  }
  const FloatFormat wide{8, 27};
  expect_cast(random_pairs(10000, wide).a, wide, kFloat32);
  for (const FloatFormat to : {wide, FloatFormat{8, 7}, FloatFormat{5, 10}, FloatFormat{11, 30}}) {
    expect_cast(random_pairs(5000, kFloat32).a, kFloat32, to);
  }
  expect_cast(random_pairs(500, wide).a, wide, kFloat32, {false, 4});
}

TEST(FloatConversion, ToFixed) {
  const FloatFormat small{4, 3};
  for (const int bits : {2, 3, 4, 5, 8, 20, 61, 64}) {
    for (const int scale : {0, 1, 5, 20, 63}) expect_to_fixed(all_of(small), small, bits, scale);
  }
  const Values values = random_pairs(10000, kFloat32).a;
  for (const int bits : {16, 32, 40, 41, 48, 64}) expect_to_fixed(values, kFloat32, bits, 12);
  for (const int scale : {0, 63}) expect_to_fixed(values, kFloat32, 64, scale);
  expect_to_fixed(random_pairs(500, kFloat32).a, kFloat32, 32, 12, {false, 4});
}

TEST(FloatConversion, FromFixed) {
  Words all(256);
  for (u64 x = 0; x < 256; ++x) all[x] = x;
  for (const FloatFormat f : {FloatFormat{4, 3}, FloatFormat{3, 2}, FloatFormat{5, 10}, kFloat32}) {
    for (const int scale : {0, 4, 20}) expect_from_fixed(all, 8, scale, f);
  }
  for (const int bits : {2, 16, 24, 25, 32, 63, 64}) {
    Words numbers = random_words(5000, bits);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (i % 2 == 0) numbers[i] = (numbers[i] >> (i % bits)) & low_mask(bits);
    }
    expect_from_fixed(numbers, bits, 12, kFloat32);
  }
  expect_from_fixed(random_words(500, 32), 32, 12, kFloat32, {false, 4});
}

TEST(FloatConversion, RoundsToIntegers) {
  constexpr UnaryFloat kRound{float_round_to_integer, clear_float_round_to_integer};
  for (const FloatFormat f : {FloatFormat{4, 3}, FloatFormat{5, 10}}) {
    expect_equals_twin(kRound, all_of(f), f);
  }
  Values values = random_pairs(10000, kFloat32).a;
  for (FloatValue& v : values) {
    if (!v.zero && !is_infinity(v, kFloat32)) v.exponent = (v.exponent + 126) % 30 - 3;
  }
  expect_equals_twin(kRound, values, kFloat32);
  expect_equals_twin(kRound, random_pairs(500, kFloat32).a, kFloat32, {false, 4});
}

}  // namespace
}  // namespace privml::floating
