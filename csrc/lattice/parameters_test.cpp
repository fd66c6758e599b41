// SPDX-License-Identifier: Apache-2.0
#include "lattice/parameters.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"

namespace privml::lattice {
namespace {

ProductBounds bounds(i64 inner, int weight_bits, int ring_bits) {
  return {inner, largest_weight(weight_bits, true), ring_bits};
}

RingSet set_of(int log_q) {
  for (const RingSet& set : kColumnSets)
    if (set.log_q == log_q) return set;
  throw InvalidArgument("no such set");
}

TEST(LatticeParameters, EverySetHasTheSecurityThatIsRequired) {
  int last = 0;
  for (const RingSet& set : kColumnSets) {
    EXPECT_LE(set.log_q, standard_modulus_bits(set.n));
    EXPECT_GE(set.security.gates, kRequiredBits);
    EXPECT_GE(set.security.core_svp, kRequiredBits);
    EXPECT_GT(set.log_q, last);  // the smallest first
    last = set.log_q;
  }
  EXPECT_EQ(standard_modulus_bits(4095), 0);
}

ColumnChoice choice_of(int log_q, int dropped, int ring_bits, int upload_bits) {
  return {set_of(log_q), dropped, ring_bits + dropped, upload_bits, 0};
}

TEST(LatticeParameters, FailuresAreBoundedAsTheTailSays) {
  EXPECT_LE(log2_failure(choice_of(72, 10, 44, 72), bounds(768, 12, 44)), -136);
  EXPECT_GT(log2_failure(choice_of(72, 9, 44, 72), bounds(768, 12, 44)), kRequiredFailure);
  EXPECT_LE(log2_failure(choice_of(80, 10, 49, 80), bounds(4096, 16, 49)), -120);
  EXPECT_LE(log2_failure(choice_of(76, 10, 49, 76), bounds(3072, 12, 49)), -120);
  // The sum of all terms by hand: unit 2^-13, |W|^2 = 4096 * 2^10 of weights whose absolute values
  // sum up to 2^17; uploads rounded by 10 bits, of which the mean is half a unit.
  const double weights = std::exp2(22) * (10.5 + std::exp2(20) / 12), rest = 10.5 * (4096 + 3034);
  const double c1 = 3034 / 12. * (1 + 2 * std::exp2(-26));
  const double variance = std::exp2(-26) * (weights + rest) + c1;
  const double room = 254.5 - std::exp2(-13) * std::exp2(17) / 2;
  EXPECT_NEAR(log2_failure(choice_of(72, 10, 49, 62), bounds(4096, 6, 49)),
              1 - room * room / 2 / variance / std::log(2.), 1e-9);
  // Without rounding there is no mean; with more of it than room results may be wrong.
  const double exact = std::exp2(-26) * (std::exp2(22) * 10.5 + rest) + c1;
  EXPECT_NEAR(log2_failure(choice_of(72, 10, 49, 72), bounds(4096, 6, 49)),
              1 - 254.5 * 254.5 / 2 / exact / std::log(2.), 1e-9);
  EXPECT_EQ(log2_failure(choice_of(72, 10, 49, 62), bounds(4096, 16, 49)), 0);
}

TEST(LatticeParameters, ModuliThatAreTooSmallAreRefused) {
  EXPECT_GT(log2_failure(choice_of(72, 10, 49, 72), bounds(4096, 16, 49)), kRequiredFailure);
  const auto choice = choose_columns(bounds(4096, 16, 49), Noise::tail);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->set.log_q, 80);
  EXPECT_EQ(choice->answer_bits, 59);
  EXPECT_EQ(choose_columns(bounds(768, 12, 44), Noise::tail)->set.log_q, 72);
  EXPECT_EQ(choose_columns(bounds(768, 12, 32), Noise::tail)->set.log_q, 64);
  EXPECT_FALSE(choose_columns(bounds(4096, 16, 55), Noise::tail));
  EXPECT_FALSE(choose_columns(bounds(4096, 32, 44), Noise::tail));
  EXPECT_THROW(choose_columns({0, 1, 1}, Noise::tail), InvalidArgument);
  EXPECT_THROW(choose_columns({1, 1, 0}, Noise::tail), InvalidArgument);
}

TEST(LatticeParameters, UploadsHaveTheFewestBitsThatServe) {
  for (const int ring_bits : {1, 16, 32, 44, 49})
    for (const int weight_bits : {2, 8, 12, 16}) {
      const ProductBounds given = bounds(768, weight_bits, ring_bits);
      ColumnChoice choice = choose_columns(given, Noise::tail).value();
      EXPECT_LE(log2_failure(choice, given), kRequiredFailure);
      EXPECT_GT(choice.upload_bits, ring_bits);
      if (--choice.upload_bits <= ring_bits) continue;
      EXPECT_GT(log2_failure(choice, given), kRequiredFailure);
    }
}

TEST(LatticeParameters, ProvedChoicesHoldTheWorstCase) {
  for (const int ring_bits : {16, 32, 44, 49, 50})
    for (const int weight_bits : {4, 8, 12, 16})
      for (const i64 inner : {1, 768, 4096}) {
        const auto choice = choose_columns(bounds(inner, weight_bits, ring_bits), Noise::proved);
        if (!choice) continue;
        EXPECT_LT(largest_noise(*choice, bounds(inner, weight_bits, ring_bits)),
                  std::exp2(choice->dropped - 2));
        EXPECT_EQ(choice->log2_failure, -std::numeric_limits<double>::infinity());
        EXPECT_GE(choice->dropped, 13);  // rounding alone can reach 1517
      }
}

}  // namespace
}  // namespace privml::lattice
