// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/sine.h"

#include <gtest/gtest.h>

#include <cmath>

#include "functions/fixed/testing/functions.h"

namespace privml::fixed {
namespace {

using namespace fixed::testing;

constexpr TestedFunction kSin{sin, clear_sin};
constexpr TestedFunction kCos{cos, clear_cos};

TEST(Sine, AllInputsOfSixteenBits) {
  expect_equals_twin(kSin, every_number(16), {{16, 12}, {16, 12}});
  expect_equals_twin(kCos, every_number(16), {{16, 8}, {16, 14}});
}

TEST(Sine, EveryNarrowFormat) {
  for (const TestedFunction& function : {kSin, kCos})
    for (int bits : {2, 3, 5, 8})
      for (int scale = 0; scale <= bits - 2; ++scale)
        for (FixedFormat out : {FixedFormat{2, 0}, FixedFormat{8, 4}, FixedFormat{13, 8}})
          expect_equals_twin(function, all_numbers(bits), {{bits, scale}, out});
}

TEST(Sine, WideFormats) {
  for (const TestedFunction& function : {kSin, kCos})
    for (FixedFormat in : {FixedFormat{16, 4}, FixedFormat{21, 12}, FixedFormat{32, 12},
                           FixedFormat{32, 30}, FixedFormat{32, 0}})
      for (FixedFormat out : {FixedFormat{16, 14}, FixedFormat{32, 12}, FixedFormat{32, 30}}) {
        const i64 largest = (i64{1} << (in.bits - 1)) - 1;
        expect_equals_twin(function, random_numbers(100, -largest - 1, largest), {in, out});
      }
}

TEST(Sine, OverSoftSpoken) {
  expect_equals_twin(kSin, random_numbers(500, -(1 << 20), 1 << 20), {{21, 12}, {16, 12}},
                     {false, 4});
}

// A double's error is far below the bound; `make prove` has the proof for 16 bits.
TEST(Sine, WithinAUnitOfTheExactValue) {
  for (const auto& [in, out] : {FormatPair{{21, 12}, {16, 12}}, FormatPair{{16, 8}, {16, 14}},
                                FormatPair{{32, 16}, {32, 28}}, FormatPair{{32, 0}, {32, 24}},
                                FormatPair{{32, 30}, {32, 20}}}) {
    const i64 largest = (i64{1} << (in.bits - 1)) - 1;
    const Numbers x = in.bits == 21 ? all_numbers(21) : random_numbers(5000, -largest - 1, largest);
    const Numbers s = clear(kSin, x, {in, out}), c = clear(kCos, x, {in, out});
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double angle = std::ldexp(x[i], -in.scale);
      ASSERT_NEAR(static_cast<double>(s[i]), std::ldexp(std::sin(angle), out.scale), 1) << x[i];
      ASSERT_NEAR(static_cast<double>(c[i]), std::ldexp(std::cos(angle), out.scale), 1) << x[i];
    }
  }
}

TEST(Sine, LengthsAroundAChunk) {
  for (i64 n : {i64{0}, i64{1}, i64{2}, kFunctionChunk + 1})
    expect_equals_twin(kSin, random_numbers(n, -200, 200), {{9, 5}, {12, 6}});
}

TEST(Sine, WireTraces) {
  const auto trace = [](const TestedFunction& function) {
    return wire_trace(function, random_numbers(100, -(1 << 15), (1 << 15) - 1),
                      {{16, 12}, {16, 12}});
  };
  EXPECT_EQ(trace(kSin), "9ce0647b2a98a9d6");
  EXPECT_EQ(trace(kCos), "dbd353ffd8c95e95");
}

TEST(Sine, RefusesOtherFormats) {
  Numbers x{0}, y(1), two(2);
  EXPECT_THROW(clear_sin(x, {33, 12}, {16, 12}, y), InvalidArgument);
  EXPECT_THROW(clear_sin(x, {16, 15}, {16, 12}, y), InvalidArgument);
  EXPECT_THROW(clear_cos(x, {16, 12}, {16, 12}, two), InvalidArgument);
}

}  // namespace
}  // namespace privml::fixed
