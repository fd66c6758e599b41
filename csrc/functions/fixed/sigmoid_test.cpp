// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "functions/fixed/smooth.h"
#include "functions/fixed/testing/functions.h"

namespace privml::fixed {
namespace {

using namespace fixed::testing;

constexpr TestedFunction kSigmoid{smooth<SmoothFunction::sigmoid>,
                                  clear_smooth<SmoothFunction::sigmoid>};
constexpr TestedFunction kTanh{smooth<SmoothFunction::tanh>, clear_smooth<SmoothFunction::tanh>};
constexpr FormatPair kPaper{{16, 12}, {16, 12}};

TEST(Sigmoid, AllInputsOfSixteenBits) { expect_equals_twin(kSigmoid, every_number(16), kPaper); }
TEST(Tanh, AllInputsOfSixteenBits) { expect_equals_twin(kTanh, every_number(16), kPaper); }

TEST(Sigmoid, EveryNarrowFormat) {
  for (int bits : {2, 3, 5, 9})
    for (int scale = 0; scale <= bits - 2; ++scale)
      for (FixedFormat out :
           {FixedFormat{2, 0}, FixedFormat{3, 1}, FixedFormat{8, 6}, FixedFormat{13, 5}})
        for (const TestedFunction& function : {kSigmoid, kTanh})
          expect_equals_twin(function, all_numbers(bits), {{bits, scale}, out});
}

TEST(Sigmoid, WideFormats) {
  for (FixedFormat in : {FixedFormat{8, 4}, FixedFormat{24, 12}, FixedFormat{32, 12},
                         FixedFormat{32, 30}, FixedFormat{32, 0}})
    for (FixedFormat out : {FixedFormat{8, 6}, FixedFormat{20, 18}, FixedFormat{32, 12},
                            FixedFormat{32, 24}, FixedFormat{32, 30}})
      for (const TestedFunction& function : {kSigmoid, kTanh})
        expect_equals_twin(
            function,
            random_numbers(200, -(i64{1} << (in.bits - 1)), (i64{1} << (in.bits - 1)) - 1),
            {in, out});
}

// A double's error is far below the bound; `make prove` has the proof for 16 bits.
TEST(Sigmoid, WideFormatsStayWithinAUnit) {
  for (const auto& [in, out] : {FormatPair{{17, 14}, {28, 26}}, FormatPair{{17, 15}, {32, 30}},
                                FormatPair{{24, 16}, {24, 20}}, FormatPair{{32, 28}, {32, 28}},
                                FormatPair{{20, 10}, {20, 10}}}) {
    const i64 near = std::min((i64{1} << (in.bits - 1)) - 1, i64{24} << in.scale);
    const Numbers x = in.bits == 17 ? all_numbers(17) : random_numbers(100000, -near, near, 7);
    const Numbers sigmoid = clear(kSigmoid, x, {in, out}), tanh = clear(kTanh, x, {in, out});
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double a = std::ldexp(x[i], -in.scale);
      ASSERT_NEAR(sigmoid[i], std::ldexp(1 / (1 + std::exp(-a)), out.scale), 1.0) << x[i];
      ASSERT_NEAR(tanh[i], std::ldexp(std::tanh(a), out.scale), 1.0) << x[i];
    }
  }
}

TEST(Sigmoid, OverSoftSpoken) {
  const Numbers x = random_numbers(300, -(1 << 15), (1 << 15) - 1);
  expect_equals_twin(kSigmoid, x, kPaper, {false, 4});
  expect_equals_twin(kTanh, x, kPaper, {false, 4});
}

TEST(Sigmoid, LengthsAroundAChunk) {
  for (i64 n : {i64{0}, i64{1}, i64{2}, kFunctionChunk + 1})
    expect_equals_twin(kSigmoid, random_numbers(n, -200, 200), {{9, 5}, {8, 4}});
}

TEST(Sigmoid, IsSymmetricAndRisesFromZeroToOne) {
  for (int scale : {8, 12, 14}) {
    const FormatPair formats{{16, 8}, {16, scale}};
    const Numbers y = clear(kSigmoid, all_from(-((1 << 15) - 1), (1 << 15) - 1), formats);
    const i64 one = i64{1} << scale;
    EXPECT_EQ(y.front(), 0);
    EXPECT_EQ(y.back(), one);
    EXPECT_EQ(y[y.size() / 2], one / 2);
    for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i] + y[y.size() - 1 - i], one);
    for (std::size_t i = 1; i < y.size(); ++i) ASSERT_GE(y[i] + 1, y[i - 1]);
  }
}

TEST(Tanh, IsOddAndReachesOne) {
  for (int scale : {8, 12, 14}) {
    const FormatPair formats{{16, 9}, {16, scale}};
    const Numbers y = clear(kTanh, all_from(-((1 << 15) - 1), (1 << 15) - 1), formats);
    EXPECT_EQ(y.front(), -(i64{1} << scale));
    EXPECT_EQ(y[y.size() / 2], 0);
    for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], -y[y.size() - 1 - i]);
    for (std::size_t i = 1; i < y.size(); ++i) ASSERT_GE(y[i] + 1, y[i - 1]);
  }
}

TEST(Sigmoid, LeastNumber) {
  EXPECT_EQ(clear(kSigmoid, {-(1 << 15)}, {{16, 8}, {16, 12}})[0], 0);
  EXPECT_EQ(clear(kTanh, {-(1 << 15)}, {{16, 8}, {16, 12}})[0], -4096);
}

TEST(Sigmoid, RefusesOtherFormats) {
  Numbers x{0}, y(1), two(2);
  for (const TestedFunction& function : {kSigmoid, kTanh}) {
    EXPECT_THROW(function.twin(x, {33, 12}, {16, 12}, y), InvalidArgument);
    EXPECT_THROW(function.twin(x, {16, 12}, {16, 15}, y), InvalidArgument);
    EXPECT_THROW(function.twin(x, {16, 12}, {16, 12}, two), InvalidArgument);
  }
}

TEST(Sigmoid, WireTrace) {
  const Numbers x = random_numbers(100, -(1 << 15), (1 << 15) - 1);
  EXPECT_EQ(wire_trace(kSigmoid, x, kPaper), "a8c63b9a026d8414");
  EXPECT_EQ(wire_trace(kTanh, x, kPaper), "7c6e14c7625d4950");
}

}  // namespace
}  // namespace privml::fixed
