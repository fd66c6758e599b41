// SPDX-License-Identifier: Apache-2.0
// The costs that SiRNN (Rathee et al., S&P 2021) states in Table V, as upper bounds of ours
// (testing/published_costs.h). Digits and places of bits have logarithmic depth, by a few more ANDs
// than the table's chains.
#include "twopc/testing/published_costs.h"

#include <gtest/gtest.h>

#include <bit>

#include "twopc/compare/comparison.h"
#include "twopc/compare/nonzero_bit.h"
#include "twopc/compare/wrap.h"
#include "twopc/lookup/digits.h"
#include "twopc/product/multiplication.h"
#include "twopc/width/extension.h"
#include "twopc/width/known_msb.h"
#include "twopc/width/truncation.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

TEST(PublishedCosts, Comparison) {
  for (int bits : {8, 16, 32, 37, 64}) {
    EXPECT_LE(bits_of(comparison(bits).ours), 1.4 * (kLambda + 14) * bits);
    EXPECT_LE(bits_of(comparison(bits).ours, 2), (kLambda + 14) * bits);
  }
}

TEST(PublishedCosts, Extension) {
  for (const auto& [from, to] : {std::pair{8, 16}, {16, 32}, {32, 64}, {16, 17}, {37, 64}}) {
    const int m = from, n = to;
    const double known = 2 * kLambda - m + n + 2;
    expect_within(
        "extension", [=](auto& c, i64 k) { cost_extend(c, k, m, n); }, comparison(m),
        kLambda * (m + 1) + 13 * m + n);
    expect_within(
        "extension, msb known", [=](auto& c, i64 k) { cost_extend_known_msb(c, k, m, n); }, {},
        known);
    expect_within(
        "extension, msb shared", [=](auto& c, i64 k) { cost_extend_shared_msb(c, k, m, n); }, {},
        known + kLambda + 2);
  }
}

TEST(PublishedCosts, Truncation) {
  for (const auto& [bits, shift] : {std::pair{16, 8}, {32, 12}, {37, 12}, {64, 16}, {64, 40}}) {
    const int l = bits, s = shift;
    const Comparisons split{[=](ot::CostMeter& m, i64 n) { cost_compare_in_chunks(m, {l, s}, n); },
                            1.0 * l};
    expect_within(
        "truncation", [=](auto& c, i64 k) { cost_truncate(c, k, l, s); }, split,
        kLambda * (l + 3) + 15 * l + s + 20);
    expect_within(
        "truncate-and-reduce", [=](auto& c, i64 k) { cost_truncate_reduce(c, k, l, s); },
        comparison(s), kLambda * (s + 1) + l + 13 * s);
  }
}

TEST(PublishedCosts, Multiplication) {
  for (const auto& [left, right] : {std::pair{16, 16}, {8, 16}, {32, 32}, {12, 30}}) {
    const int m = left, n = right, mu = std::min(m, n), nu = std::max(m, n);
    const double known = kLambda * (2 * mu + 6) + 2 * mu * nu + mu * mu + 3 * mu + 2 * nu + 4;
    const auto product = [=](FactorFormat x, FactorFormat y) {
      return [=](ot::CostMeter& c, i64 k) { cost_multiply(c, k, x, y, m + n); };
    };
    for (bool is_signed : {false, true}) {
      const FactorFormat x{m, is_signed}, y{n, is_signed};
      expect_within("multiplication", product(x, y), comparison(m) + comparison(n),
                    kLambda * (3 * mu + nu + 4) + 2 * mu * nu + mu * mu + 17 * mu + 16 * nu);
      FactorFormat positive = x, negative = y;
      positive.nonnegative = negative.negative = true;
      expect_within("multiplication, msb known", product(positive, negative), {}, known);
    }
  }
}

TEST(PublishedCosts, DigitsAndMostSignificantBits) {
  for (int bits : {16, 32, 40, 64}) {
    const int l = bits, d = 8, rest = l / d - 1;
    const double iota = std::bit_width(static_cast<unsigned>(l - 1));
    expect_within(
        "digits", [=](auto& c, i64 k) { cost_digits(c, k, l, d); },
        comparison_with_equality(d, rest), rest * (kLambda * (d + 2) + 15 * d + 20), 1.15);
    // Ours has digits of 4 bits.
    expect_within(
        "most significant non-zero bit",
        [=](auto& c, i64 k) { cost_most_significant_nonzero_bit(c, k, l); },
        comparison_with_equality(4, l / 4 - 1),
        rest * (kLambda * (d + 8) + (1 << d) * (iota + 1) + 15 * d + 2 * iota + 60) + 6 * kLambda +
            (1 << d) * (iota + 1) + l * l + 2 * iota,
        1.15);
  }
}

}  // namespace
}  // namespace privml::twopc
