// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/exponential.h"

#include <gtest/gtest.h>

#include "functions/fixed/exponential_table.h"
#include "functions/fixed/testing/functions.h"

namespace privml::fixed {
namespace {

using namespace fixed::testing;

constexpr TestedFunction kExp{exp, clear_exp};
constexpr TestedFunction kExpNegative{exp_negative, clear_exp_negative};

TEST(ExponentialTable, Checksum) {
  EXPECT_EQ(checksum(exponential_table({8, 0, 12, 12})), 4012700885458843914U);
  EXPECT_EQ(checksum(exponential_table({8, 8, 12, 31})), 3228738500890832496U);
  EXPECT_EQ(checksum(exponential_table({7, 3, 0, 14})), 7833386909633868734U);
}

TEST(ExponentialTable, KnownValues) {
  // floor(2^64 e^-1), and e^-0 as 1.
  EXPECT_EQ(static_cast<u64>(exponential_fraction(1, 0)), 0x5e2d58d8b3bcdf1aU);
  EXPECT_TRUE(exponential_fraction(0, 12) == u128{1} << 64);
  EXPECT_EQ(exponential_table({1, 0, 0, 8}), (std::vector<u64>{256, 94}));
}

TEST(ExpNegative, AllInputsOfSixteenBits) {
  expect_equals_twin(kExpNegative, all_from(-(1 << 15), 0), {{16, 12}, {16, 12}});
}

TEST(ExpNegative, EveryNarrowFormat) {
  for (int bits : {2, 3, 5, 9})
    for (int scale = 0; scale <= bits - 2; ++scale)
      for (FixedFormat out : {FixedFormat{2, 0}, FixedFormat{8, 6}, FixedFormat{13, 5}})
        expect_equals_twin(kExpNegative, all_from(-(1 << (bits - 1)), 0), {{bits, scale}, out});
}

TEST(ExpNegative, WideFormats) {
  for (FixedFormat in : {FixedFormat{16, 8}, FixedFormat{24, 12}, FixedFormat{32, 12},
                         FixedFormat{32, 24}, FixedFormat{32, 0}})
    for (FixedFormat out : {FixedFormat{16, 14}, FixedFormat{32, 12}, FixedFormat{32, 30}})
      expect_equals_twin(kExpNegative, random_numbers(300, -(i64{1} << (in.bits - 1)), 0),
                         {in, out});
}

TEST(ExpNegative, OverSoftSpoken) {
  expect_equals_twin(kExpNegative, random_numbers(500, -(1 << 15), 0), {{16, 12}, {16, 12}},
                     {false, 4});
}

TEST(ExpNegative, LengthsAroundAChunk) {
  for (i64 n : {i64{0}, i64{1}, i64{2}, kFunctionChunk, kFunctionChunk + 1})
    expect_equals_twin(kExpNegative, random_numbers(n, -200, 0), {{9, 5}, {8, 4}});
}

TEST(ExpNegative, FallsFromOneToZero) {
  for (FormatPair formats : {FormatPair{{16, 12}, {16, 14}}, FormatPair{{16, 8}, {16, 12}}}) {
    const Numbers y = clear(kExpNegative, all_from(-(1 << 15), 0), formats);
    EXPECT_EQ(y.back(), i64{1} << formats.out.scale);
    for (std::size_t i = 1; i < y.size(); ++i) ASSERT_GE(y[i] + 1, y[i - 1]);
  }
  EXPECT_EQ(clear(kExpNegative, {-(1 << 15)}, {{16, 8}, {16, 12}})[0], 0);
}

TEST(Exp, AllInputsOfSixteenBits) {
  expect_equals_twin(kExp, every_number(16), {{16, 12}, {16, 12}});
}

TEST(Exp, NarrowAndWideFormats) {
  for (int bits : {2, 3, 5, 9})
    for (int scale = 0; scale <= bits - 2; ++scale)
      for (FixedFormat out : {FixedFormat{2, 0}, FixedFormat{8, 6}, FixedFormat{13, 5}})
        expect_equals_twin(kExp, all_numbers(bits), {{bits, scale}, out});
  for (FixedFormat in :
       {FixedFormat{16, 8}, FixedFormat{24, 20}, FixedFormat{32, 12}, FixedFormat{32, 30}})
    for (FixedFormat out : {FixedFormat{16, 14}, FixedFormat{32, 12}, FixedFormat{32, 30}})
      expect_equals_twin(
          kExp, random_numbers(300, -(i64{1} << (in.bits - 1)), (i64{1} << (in.bits - 1)) - 1),
          {in, out});
}

TEST(Exp, SaturatesAtTheLargestExponentialOfTheFormat) {
  // ln 8 = 2.0794 = 532.3 / 256; e^(532 / 256) = 7.99 fits 16 bits of scale 12.
  const FormatPair formats{{16, 8}, {16, 12}};
  const Numbers y = clear(kExp, {0, 531, 532, 533, 5000, 32767, -(1 << 15)}, formats);
  EXPECT_NEAR(static_cast<double>(y[0]), 4096, 1.5);
  EXPECT_LT(y[1], y[2]);
  EXPECT_GT(y[2], 32700);
  for (int i : {3, 4, 5}) EXPECT_EQ(y[i], y[2]);
  EXPECT_EQ(y[6], 0);
  EXPECT_EQ(clear(kExp, {127}, {{8, 0}, {16, 14}})[0], clear(kExp, {0}, {{8, 0}, {16, 14}})[0]);
}

TEST(ExpNegative, RefusesOtherFormats) {
  Numbers x{0}, y(1), two(2);
  EXPECT_THROW(clear_exp_negative(x, {33, 12}, {16, 12}, y), InvalidArgument);
  EXPECT_THROW(clear_exp_negative(x, {16, 15}, {16, 12}, y), InvalidArgument);
  EXPECT_THROW(clear_exp_negative(x, {16, 12}, {16, -1}, y), InvalidArgument);
  EXPECT_THROW(clear_exp_negative(x, {16, 12}, {1, 0}, y), InvalidArgument);
  EXPECT_THROW(clear_exp_negative(x, {16, 12}, {16, 12}, two), InvalidArgument);
}

TEST(ExpNegative, WireTrace) {
  EXPECT_EQ(wire_trace(kExpNegative, random_numbers(100, -(1 << 15), 0), {{16, 12}, {16, 12}}),
            "707a870e1622c14e");
}

}  // namespace
}  // namespace privml::fixed
