// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/reciprocal.h"

#include <gtest/gtest.h>

#include "functions/fixed/testing/functions.h"

namespace privml::fixed {
namespace {

using namespace fixed::testing;

constexpr TestedFunction kReciprocal{reciprocal, clear_reciprocal};
constexpr FormatPair kPaper{{16, 12}, {16, 12}};

TEST(Reciprocal, AllInputsOfSixteenBits) {
  expect_equals_twin(kReciprocal, all_from(0, (1 << 15) - 1), kPaper);
}

TEST(Reciprocal, EveryNarrowFormat) {
  for (int bits : {2, 3, 5, 9, 10, 11})
    for (int scale = 0; scale <= bits - 2; ++scale)
      for (FixedFormat out : {FixedFormat{2, 0}, FixedFormat{8, 6}, FixedFormat{13, 5}})
        expect_equals_twin(kReciprocal, all_from(0, (1 << (bits - 1)) - 1), {{bits, scale}, out});
}

TEST(Reciprocal, WideFormats) {
  for (FixedFormat in :
       {FixedFormat{16, 8}, FixedFormat{24, 12}, FixedFormat{32, 0}, FixedFormat{32, 30}})
    for (FixedFormat out :
         {FixedFormat{8, 0}, FixedFormat{16, 14}, FixedFormat{32, 12}, FixedFormat{32, 30}})
      for (int small : {0, 10}) {
        const i64 most = (i64{1} << (in.bits - 1 - small)) - 1;
        expect_equals_twin(kReciprocal, random_numbers(200, 0, most), {in, out});
      }
}

TEST(Reciprocal, OverSoftSpoken) {
  expect_equals_twin(kReciprocal, random_numbers(300, 1, (1 << 15) - 1), kPaper, {false, 4});
}

TEST(Reciprocal, LengthsAroundAChunk) {
  for (i64 n : {i64{0}, i64{1}, i64{2}, kFunctionChunk + 1})
    expect_equals_twin(kReciprocal, random_numbers(n, 1, 500), {{10, 5}, {8, 4}});
}

TEST(Reciprocal, PowersOfTwoSaturationAndZero) {
  const Numbers y = clear(kReciprocal, {4096, 2048, 8192, 1024, 512, 511, 1, 0}, kPaper);
  EXPECT_EQ(y, (Numbers{4096, 8192, 2048, 16384, 32767, 32767, 32767, 32767}));
  EXPECT_EQ(clear(kReciprocal, {0, 1}, {{16, 4}, {16, 4}}), (Numbers{256, 256}));
}

TEST(Reciprocal, FallsWithX) {
  const Numbers y = clear(kReciprocal, all_from(1, (1 << 15) - 1), kPaper);
  for (std::size_t i = 1; i < y.size(); ++i) ASSERT_LE(y[i], y[i - 1] + 2);
}

TEST(Reciprocal, RefusesOtherFormats) {
  Numbers x{1}, y(1), two(2);
  EXPECT_THROW(clear_reciprocal(x, {33, 12}, {16, 12}, y), InvalidArgument);
  EXPECT_THROW(clear_reciprocal(x, {16, 12}, {16, 15}, y), InvalidArgument);
  EXPECT_THROW(clear_reciprocal(x, {16, 12}, {16, 12}, two), InvalidArgument);
}

TEST(Reciprocal, OverASlowLink) {
  for (const FormatPair& formats : {FormatPair{{20, 13}, {12, 10}}, {{32, 20}, {32, 28}}})
    for (i64 n : {1, 2, 300})
      expect_equals_twin(kReciprocal, random_numbers(n, 0, (i64{1} << (formats.in.bits - 1)) - 1),
                         formats, {}, 8);
}

TEST(Reciprocal, WireTrace) {
  EXPECT_EQ(wire_trace(kReciprocal, random_numbers(100, 1, (1 << 15) - 1), kPaper),
            "0704dc36b0af1874");
}

}  // namespace
}  // namespace privml::fixed
