// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/piecewise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "base/error.h"
#include "functions/fixed/testing/functions.h"

namespace privml::fixed {
namespace {

using namespace fixed::testing;
using namespace twopc::testing;

constexpr u64 kPlaceOne = u64{1} << kPlaceScale;

double value_at(Series series, double t) {
  return std::ldexp(
      static_cast<double>(series_value(series, static_cast<u64>(std::ldexp(t, kPlaceScale)))),
      -kValueScale);
}

TEST(Series, AgreeWithTheMathematicalLibrary) {
  for (double t = 0; t < 32; t += 0.037109375) {
    EXPECT_NEAR(value_at(Series::silu_tail, t), t / (1 + std::exp(t)), 4e-16);
    EXPECT_NEAR(value_at(Series::softplus_tail, t), std::log1p(std::exp(-t)), 4e-16);
    EXPECT_NEAR(value_at(Series::sigmoid_tail, t), 1 / (1 + std::exp(t)), 4e-16);
    EXPECT_NEAR(value_at(Series::exponential, t), std::exp(-t), 4e-16);
    EXPECT_NEAR(value_at(Series::tanh_tail, t), t < 16 ? 2 / (1 + std::exp(2 * t)) : 0, 8e-16);
    if (t < 8) {
      EXPECT_NEAR(value_at(Series::erf_tail, t), std::erfc(t), 4e-16);
      EXPECT_NEAR(value_at(Series::gelu_tail, t), t * std::erfc(t / std::sqrt(2)) / 2, 4e-16);
      EXPECT_NEAR(value_at(Series::gelu_tanh_tail, t),
                  t / (1 + std::exp(std::sqrt(8 / M_PI) * (t + 0.044715 * t * t * t))), 4e-16);
    }
    const double m = t / 32;
    EXPECT_NEAR(value_at(Series::log, m), std::log1p(m), 4e-16);
    EXPECT_NEAR(value_at(Series::rsqrt, m), 1 / std::sqrt(1 + m), 4e-16);
    EXPECT_NEAR(value_at(Series::sqrt, m), std::sqrt(1 + m), 4e-16);
    EXPECT_NEAR(value_at(Series::sine, m), std::sin(2 * std::numbers::pi * m), 2e-15);
  }
  EXPECT_EQ(value_at(Series::erf_tail, 8), 0);
  EXPECT_EQ(value_at(Series::softplus_tail, 100), 0);
}

// On one interval of length 2^-4 the fit is as good as promised.
TEST(Series, ErrorsOfFits) {
  for (Series series :
       {Series::erf_tail, Series::gelu_tail, Series::gelu_tanh_tail, Series::silu_tail,
        Series::softplus_tail, Series::log, Series::rsqrt, Series::sqrt, Series::sigmoid_tail,
        Series::tanh_tail, Series::sine, Series::exponential})
    for (int degree = 1; degree <= kLargestDegree; ++degree) {
      double worst = 0;
      for (int cell = 0; cell < 16; ++cell) {
        std::vector<i64> values(degree + 1), c(degree + 1);
        for (int j = 0; j <= degree; ++j)
          values[j] = series_value(series, (cell * kPlaceOne + fitting_place(degree, j)) / 16);
        fit_polynomial(degree, values.data(), c.data());
        for (double v = 0; v <= 1; v += 1.0 / 64) {
          double sum = 0;
          for (int i = degree; i >= 0; --i) sum = sum * v + std::ldexp(c[i], -kValueScale);
          worst = std::max(worst, std::abs(sum - value_at(series, (cell + v) / 16 * (1 - 1e-12))));
        }
      }
      const double promised = std::exp2(series_error(series, degree) / 16.0 - 4 * (degree + 1));
      EXPECT_LE(worst, promised * 1.01 + 1e-11);
      if (promised > 1e-9) {
        EXPECT_GE(worst, promised / 16) << "a loose bound costs table bits";
      }
    }
}

TEST(Series, Checksum) {
  Words words;
  for (int series = 0; series < 12; ++series)
    for (u64 i = 0; i < 64; ++i)
      words.push_back(
          static_cast<u64>(series_value(static_cast<Series>(series), i * kPlaceOne / 64)));
  EXPECT_EQ(checksum(words), 9944273131294957655U);
}

Piecewise cubic(const PiecewiseShape& shape) {
  return make_piecewise(shape, [&](i64 cell, u64 v) {
    const double x =
        std::ldexp(static_cast<double>(cell) + std::ldexp(v, -kPlaceScale), -shape.index_bits) -
        0.5;
    return static_cast<i64>(std::ldexp(x * x * x - x / 3, kValueScale));
  });
}

void expect_piecewise(const Piecewise& f, Both<Words> x, const OtKind& ot = {}) {
  const int bits = f.shape.index_bits + f.shape.place_bits;
  const Words values = reconstruct(x, bits);
  const i64 n = std::ssize(values);
  add_noise_above(x, bits);
  Both<Words> out{Words(n), Words(n)};
  Words expected(n);
  clear_piecewise(f, values, expected);
  const Outcome outcome = run_parties(ot, [&](ot::Party& party) {
    const int r = party.rank;
    functions::Evaluator evaluator(party, n);
    const functions::RingShares result = piecewise(evaluator, f, evaluator.load(x[r], 0));
    for (i64 i = 0; i < n; ++i) out[r][i] = result[i] & low_mask(f.shape.ring_bits);
  });
  const Words y = reconstruct(out, f.shape.ring_bits);
  for (i64 i = 0; i < n; ++i)
    ASSERT_EQ(y[i], expected[i] & low_mask(f.shape.ring_bits)) << values[i];
  expect_cost_equals(outcome, [&](ot::CostMeter& m) {
    functions::Evaluator evaluator(m, n);
    piecewise(evaluator, f, evaluator.ring(n));
  });
}

TEST(Piecewise, AllSharesOfSmallNumbers) {
  expect_piecewise(cubic({5, 0, 0, 6, 9}), all_share_pairs(5));
  for (int degree = 1; degree <= 4; ++degree)
    expect_piecewise(cubic({2, 4, degree, 8, 17}), all_share_pairs(6));
}

TEST(Piecewise, EveryDegreeAtRealWidths) {
  for (int degree = 1; degree <= kLargestDegree; ++degree)
    for (const auto& [index_bits, place_bits, scale] :
         {std::tuple{3, 9, 14}, {5, 20, 24}, {9, 7, 15}, {4, 26, 30}}) {
      const int bits = index_bits + place_bits;
      const Piecewise f = cubic({index_bits, place_bits, degree, scale, scale + place_bits + 6});
      expect_piecewise(f, share(random_words(300, bits), bits));
      if (place_bits == 9) expect_piecewise(f, share(random_words(300, bits), bits), {false, 4});
    }
}

TEST(Piecewise, ChosenShapesFitAndWideNumbersTakeHigherDegrees) {
  int last = 0;
  for (int scale : {8, 12, 16, 22, 28}) {
    const PiecewiseShape shape =
        choose_piecewise({Series::gelu_tail, scale + 3, scale, scale + 2, scale + 2, scale + 6});
    EXPECT_LE(shape.ring_bits, 64);
    EXPECT_EQ(shape.index_bits + shape.place_bits, scale + 3);
    EXPECT_GE(shape.degree, last);
    last = shape.degree;
  }
  EXPECT_GE(last, 3);
  EXPECT_THROW(choose_piecewise({Series::gelu_tail, 40, 37, 39, 39, 64}), InvalidArgument);
  EXPECT_FALSE(has_piecewise({Series::gelu_tail, 40, 37, 39, 39, 64}));
}

}  // namespace
}  // namespace privml::fixed
