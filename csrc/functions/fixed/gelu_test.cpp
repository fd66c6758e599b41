// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "functions/fixed/smooth.h"
#include "functions/fixed/testing/functions.h"

namespace privml::fixed {
namespace {

using namespace fixed::testing;

constexpr TestedFunction kErf{smooth<SmoothFunction::erf>, clear_smooth<SmoothFunction::erf>};
constexpr TestedFunction kGelu{smooth<SmoothFunction::gelu>, clear_smooth<SmoothFunction::gelu>};
constexpr TestedFunction kGeluTanh{smooth<SmoothFunction::gelu_tanh>,
                                   clear_smooth<SmoothFunction::gelu_tanh>};
constexpr TestedFunction kSilu{smooth<SmoothFunction::silu>, clear_smooth<SmoothFunction::silu>};
constexpr TestedFunction kSoftplus{smooth<SmoothFunction::softplus>,
                                   clear_smooth<SmoothFunction::softplus>};
constexpr TestedFunction kAll[] = {kErf, kGelu, kGeluTanh, kSilu, kSoftplus};

// One polynomial of x, and the form with ReLUs for a long range.
TEST(Gelu, AllInputsOfSixteenBits) {
  expect_equals_twin(kGelu, every_number(16), {{16, 12}, {16, 12}});
  expect_equals_twin(kGelu, every_number(16), {{16, 8}, {16, 10}});
}

TEST(GeluTanh, AllInputsOfSixteenBits) {
  expect_equals_twin(kGeluTanh, all_numbers(16), {{16, 12}, {16, 12}});
  expect_equals_twin(kGeluTanh, all_numbers(16), {{16, 8}, {16, 10}});
}

TEST(Erf, AllInputsOfSixteenBits) {
  expect_equals_twin(kErf, every_number(16), {{16, 12}, {16, 12}});
  expect_equals_twin(kErf, every_number(16), {{16, 8}, {16, 14}});
}

TEST(Silu, AllInputsOfSixteenBits) {
  expect_equals_twin(kSilu, every_number(16), {{16, 12}, {16, 12}});
}

TEST(Softplus, AllInputsOfSixteenBits) {
  expect_equals_twin(kSoftplus, every_number(16), {{16, 12}, {16, 12}});
}

TEST(SmoothFunctions, EveryNarrowFormat) {
  for (const TestedFunction& function : kAll)
    for (int bits : {2, 3, 5, 8})
      for (int scale = 0; scale <= bits - 2; ++scale)
        for (FixedFormat out : {FixedFormat{2, 0}, FixedFormat{8, 4}, FixedFormat{13, 8}})
          expect_equals_twin(function, all_numbers(bits), {{bits, scale}, out});
}

TEST(SmoothFunctions, WideFormats) {
  for (const TestedFunction& function : kAll)
    for (FixedFormat in : {FixedFormat{16, 4}, FixedFormat{24, 12}, FixedFormat{32, 12},
                           FixedFormat{32, 24}, FixedFormat{32, 30}, FixedFormat{32, 0}})
      for (FixedFormat out : {FixedFormat{16, 14}, FixedFormat{32, 12}, FixedFormat{32, 30}}) {
        const i64 largest = (i64{1} << (in.bits - 1)) - 1;
        expect_equals_twin(function, random_numbers(100, -largest - 1, largest), {in, out});
        const i64 near = std::min(largest, i64{9} << in.scale);
        expect_equals_twin(function, random_numbers(100, -near, near, 3), {in, out});
      }
}

TEST(SmoothFunctions, OverSoftSpoken) {
  for (FixedFormat in : {FixedFormat{16, 12}, FixedFormat{24, 12}})
    for (const TestedFunction& function : {kErf, kGelu})
      expect_equals_twin(function, random_numbers(500, -(1 << 15), 1 << 15), {in, {16, 12}},
                         {false, 4});
}

TEST(SmoothFunctions, LengthsAroundAChunk) {
  for (i64 n : {i64{0}, i64{1}, i64{2}, kFunctionChunk, kFunctionChunk + 1})
    expect_equals_twin(kGelu, random_numbers(n, -200, 200), {{9, 5}, {12, 6}});
}

double exact(const TestedFunction& function, double x) {
  if (function.twin == kErf.twin) return std::erf(x);
  if (function.twin == kGelu.twin) return x * std::erfc(-x / std::sqrt(2)) / 2;
  if (function.twin == kGeluTanh.twin)
    return x / (1 + std::exp(-std::sqrt(8 / M_PI) * (x + 0.044715 * x * x * x)));
  if (function.twin == kSilu.twin) return x / (1 + std::exp(-x));
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}

// A double's error is far below the bound; `make prove` has the proof.
TEST(SmoothFunctions, WithinAUnitOfTheExactValue) {
  for (const TestedFunction& function : kAll)
    for (const auto& [in, out] : {FormatPair{{16, 12}, {16, 12}}, FormatPair{{16, 8}, {16, 8}},
                                  FormatPair{{32, 16}, {32, 16}}, FormatPair{{32, 24}, {32, 24}},
                                  FormatPair{{17, 14}, {28, 24}}, FormatPair{{20, 12}, {24, 12}}}) {
      const i64 near = std::min((i64{1} << (in.bits - 1)) - 9, i64{20} << in.scale);
      const Numbers x = random_numbers(2000, -near, near, 5);
      const Numbers y = clear(function, x, {in, out});
      for (std::size_t i = 0; i < x.size(); ++i)
        ASSERT_NEAR(static_cast<double>(y[i]),
                    std::ldexp(exact(function, std::ldexp(x[i], -in.scale)), out.scale), 1.0)
            << "x = " << x[i] << " of scale " << in.scale;
    }
}

TEST(SmoothFunctions, FarFromZeroTheyAreLines) {
  const FormatPair formats{{32, 12}, {32, 12}};
  const i64 far = (i64{1} << 31) - 1;
  for (i64 x : {far, far - 12345, i64{40} << 12}) {
    EXPECT_EQ(clear(kErf, {x, -x}, formats), (Numbers{1 << 12, -(1 << 12)}));
    for (const TestedFunction& function : {kGelu, kGeluTanh, kSilu, kSoftplus})
      EXPECT_EQ(clear(function, {x, -x}, formats), (Numbers{x, 0}));
  }
  EXPECT_EQ(clear(kErf, {-far - 1}, formats), Numbers{-(1 << 12)});
  EXPECT_EQ(clear(kGelu, {-far - 1}, formats), Numbers{0});
}

TEST(SmoothFunctions, RefuseOtherFormats) {
  Numbers x{0}, y(1), two(2);
  for (const TestedFunction& function : kAll) {
    EXPECT_THROW(function.twin(x, {33, 12}, {16, 12}, y), InvalidArgument);
    EXPECT_THROW(function.twin(x, {16, 15}, {16, 12}, y), InvalidArgument);
    EXPECT_THROW(function.twin(x, {16, 12}, {1, 0}, y), InvalidArgument);
    EXPECT_THROW(function.twin(x, {16, 12}, {16, 12}, two), InvalidArgument);
  }
}

TEST(SmoothFunctions, OverASlowLink) {
  for (const FormatPair& formats : {FormatPair{{12, 8}, {21, 8}}, {{16, 12}, {16, 12}}})
    for (const TestedFunction& function : {kGelu, kErf})
      for (i64 n : {1, 2, 300}) {
        const i64 most = (i64{1} << (formats.in.bits - 1)) - 1;
        expect_equals_twin(function, random_numbers(n, -most - 1, most), formats, {}, 8);
      }
}

TEST(SmoothFunctions, WireTraces) {
  const auto trace = [](const TestedFunction& function, FixedFormat in) {
    return wire_trace(function, random_numbers(100, -(1 << 15), (1 << 15) - 1), {in, {16, 12}});
  };
  EXPECT_EQ(trace(kGelu, {16, 12}), "ef770b25e6d7ac88");
  EXPECT_EQ(trace(kGelu, {16, 8}), "f764717973a62ace");
  EXPECT_EQ(trace(kGeluTanh, {16, 12}), "75b5112e05b7fbd5");
  EXPECT_EQ(trace(kErf, {16, 8}), "04daf6ade9d67bcf");
}

}  // namespace
}  // namespace privml::fixed
