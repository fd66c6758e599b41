// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/logarithm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "functions/fixed/testing/functions.h"

namespace privml::fixed {
namespace {

using namespace fixed::testing;

constexpr TestedFunction kLog{log, clear_log};

TEST(Log, AllInputsOfSixteenBits) {
  expect_equals_twin(kLog, every_number(16), {{16, 12}, {16, 11}});
}

TEST(Log, EveryNarrowFormat) {
  for (int bits : {2, 3, 9, 10})
    for (int scale = 0; scale <= bits - 2; scale += bits == 10 ? 3 : 1)
      for (FixedFormat out : {FixedFormat{2, 0}, FixedFormat{8, 4}, FixedFormat{13, 11}})
        expect_equals_twin(kLog, all_from(0, (1 << (bits - 1)) - 1), {{bits, scale}, out});
}

TEST(Log, WideFormats) {
  for (FixedFormat in : {FixedFormat{16, 0}, FixedFormat{16, 14}, FixedFormat{32, 12},
                         FixedFormat{32, 24}, FixedFormat{32, 30}, FixedFormat{32, 0}})
    for (FixedFormat out :
         {FixedFormat{16, 11}, FixedFormat{32, 0}, FixedFormat{32, 12}, FixedFormat{32, 26}}) {
      Numbers x = random_numbers(100, 0, (i64{1} << (in.bits - 1)) - 1);
      for (int i = 0; i < in.bits - 1; ++i) x.push_back(i64{1} << i | (x[i] >> (31 - i)));
      expect_equals_twin(kLog, x, {in, out});
    }
}

TEST(Log, OverSoftSpokenAndAroundAChunk) {
  expect_equals_twin(kLog, random_numbers(500, 0, (1 << 15) - 1), {{16, 12}, {16, 11}}, {false, 4});
  for (i64 n : {i64{0}, i64{1}, i64{2}, kFunctionChunk + 1})
    expect_equals_twin(kLog, random_numbers(n, 0, 500), {{10, 5}, {8, 4}});
}

// A double's error is far below the bound; `make prove` has the proof.
TEST(Log, WithinAUnitOfTheExactValue) {
  for (const auto& [in, out] : {FormatPair{{16, 12}, {16, 11}}, FormatPair{{32, 16}, {32, 16}},
                                FormatPair{{32, 24}, {32, 26}}, FormatPair{{9, 4}, {12, 6}}}) {
    const Numbers x = random_numbers(2000, 1, (i64{1} << (in.bits - 1)) - 1, 5);
    const Numbers y = clear(kLog, x, {in, out});
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_NEAR(static_cast<double>(y[i]),
                  std::ldexp(std::log(std::ldexp(x[i], -in.scale)), out.scale), 1.2)
          << x[i];
  }
}

TEST(Log, OfZeroAndBelowTheOutputFormat) {
  for (const FormatPair formats :
       {FormatPair{{16, 12}, {16, 11}}, FormatPair{{16, 12}, {16, 12}},
        FormatPair{{8, 4}, {16, 12}}, FormatPair{{8, 6}, {8, 6}}, FormatPair{{32, 30}, {16, 14}}}) {
    const Numbers y = clear(kLog, {0, 1}, formats);
    EXPECT_EQ(y[0], y[1]);
    EXPECT_LT(y[1], 0);
  }
}

TEST(Log, RefusesOtherFormats) {
  Numbers x{1}, y(1), two(2);
  EXPECT_THROW(clear_log(x, {33, 12}, {16, 12}, y), InvalidArgument);
  EXPECT_THROW(clear_log(x, {16, 12}, {16, 15}, y), InvalidArgument);
  EXPECT_THROW(clear_log(x, {16, 12}, {16, 12}, two), InvalidArgument);
}

TEST(Log, WireTrace) {
  EXPECT_EQ(wire_trace(kLog, random_numbers(100, 0, (1 << 15) - 1), {{16, 12}, {16, 11}}),
            "8f958c8bac46682d");
}

}  // namespace
}  // namespace privml::fixed
