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

// Where published arithmetic of the same bound leads, but for the weight of secrets, which makes
// this one tighter.
TEST(LatticeParameters, FailuresAreBoundedAsTheTailSays) {
  EXPECT_LE(log2_failure(set_of(72), bounds(768, 12, 44), 9), -136);
  EXPECT_GT(log2_failure(set_of(72), bounds(768, 12, 44), 8), kRequiredFailure);
  EXPECT_LE(log2_failure(set_of(80), bounds(4096, 16, 49), 9), -135);
  EXPECT_LE(log2_failure(set_of(76), bounds(3072, 12, 49), 9), -136);
  // The sum of all terms by hand: unit 2^-14, |W|^2 = 4096 * 2^30.
  const double variance = std::exp2(-28) * 10.5 * (std::exp2(42) + 4096 + 3034) + 3034 / 12.;
  EXPECT_NEAR(log2_failure(set_of(72), bounds(4096, 16, 49), 9),
              1 - 254.5 * 254.5 / 2 / variance / std::log(2.), 1e-9);
}

TEST(LatticeParameters, ModuliThatAreTooSmallAreRefused) {
  EXPECT_GT(log2_failure(set_of(72), bounds(4096, 16, 49), 9), kRequiredFailure);
  const auto choice = choose_columns(bounds(4096, 16, 49), Noise::tail);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->set.log_q, 80);
  EXPECT_EQ(choice->answer_bits, 58);
  EXPECT_EQ(choose_columns(bounds(768, 12, 44), Noise::tail)->set.log_q, 72);
  EXPECT_EQ(choose_columns(bounds(768, 12, 32), Noise::tail)->set.log_q, 64);
  EXPECT_FALSE(choose_columns(bounds(4096, 16, 56), Noise::tail));
  EXPECT_FALSE(choose_columns(bounds(4096, 32, 44), Noise::tail));
  EXPECT_THROW(choose_columns({0, 1, 1}, Noise::tail), InvalidArgument);
  EXPECT_THROW(choose_columns({1, 1, 0}, Noise::tail), InvalidArgument);
}

TEST(LatticeParameters, ProvedChoicesHoldTheWorstCase) {
  for (const int ring_bits : {16, 32, 44, 49, 51})
    for (const int weight_bits : {4, 8, 12, 16})
      for (const i64 inner : {1, 768, 4096}) {
        const auto choice = choose_columns(bounds(inner, weight_bits, ring_bits), Noise::proved);
        if (!choice) continue;
        EXPECT_LT(
            largest_noise(choice->set, bounds(inner, weight_bits, ring_bits), choice->dropped),
            std::exp2(choice->dropped - 1));
        EXPECT_EQ(choice->log2_failure, -std::numeric_limits<double>::infinity());
        EXPECT_GE(choice->dropped, 12);  // rounding alone can reach 1517
      }
}

}  // namespace
}  // namespace privml::lattice
