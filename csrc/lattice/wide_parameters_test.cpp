// SPDX-License-Identifier: Apache-2.0
#include "lattice/wide_parameters.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace privml::lattice {
namespace {

WideBounds bounds(i64 inner, int ring_bits, int other_bits, int levels, int answers = 1) {
  return {ring_bits, static_cast<double>(inner) * std::exp2(2 * (other_bits - 1)), answers, levels,
          SwitchingLevels{}.with(levels)};
}

TEST(WideParameters, EverySetHasTheSecurityThatIsRequired) {
  int last = 0;
  for (const WideSet& set : kWideSets) {
    EXPECT_LE(set.ring.log_q, standard_modulus_bits(set.ring.n));
    EXPECT_GE(set.ring.security.gates, kRequiredBits);
    EXPECT_GE(set.ring.security.core_svp, kRequiredBits);
    EXPECT_GT(set.ring.log_q, last);  // the smallest first
    last = set.ring.log_q;
    double log_q = 0;
    for (const u64 p : set.used()) log_q += std::log2(static_cast<double>(p));
    EXPECT_NEAR(log_q, set.ring.log_q, 1e-4);
    EXPECT_LT(2 * set.digit_bits, set.ring.log_q);
    // A tenth of the deviation's sigmas above the mean.
    const double mean = static_cast<double>(set.ring.n) * 2 / 3;
    EXPECT_GE(static_cast<double>(most_secret_weight(set.ring.n)),
              mean + 9.9 * std::sqrt(mean / 3));
  }
}

// The sum of all terms by hand, in units of 2^-32: K = 64 factors of 31 bits, uploads of 71 bits,
// two levels of packing with keys of their own, c1 of 43 bits.
TEST(WideParameters, FailuresAreBoundedAsTheTailSays) {
  const WideSet& set = kWideSets[0];
  WideBounds given = bounds(64, 32, 32, 2);
  given.keys = {0b11};
  const WideChoice choice{set, 32, 71, 43, 0};
  const double q = std::exp2(80), weight = 3034;
  const double squares = 64 * std::exp2(62), digits = 2 * 1.05 * 1.05 * std::exp2(50);
  const double rounded = std::sqrt(squares / 12) * (std::exp2(9) + 1) +
                         std::sqrt((4 + 1) * weight / 12) * std::exp2(28);
  const double keys = (4 + 1) * digits * (4096 * 10.5 + weight / 4);
  const double c1 = weight / 12 * std::pow(std::exp2(37) + 1, 2);
  const double noise = squares * 10.5 + rounded * rounded + keys + 10.5 * (4096 + weight) + c1;
  const double variance = noise / q / q * std::exp2(64);
  const double room = 0.25 - std::exp2(-20);
  EXPECT_NEAR(log2_failure(choice, given), 1 - room * room / 2 / variance / std::log(2.), 1e-6);
}

// Noises of two keys whose products are one result take the room together: twice the variance.
TEST(WideParameters, KeysOfOneResultShareTheRoomForNoise) {
  WideBounds one = bounds(768, 36, 36, 5), two = one;
  two.keys_joined = 2;
  for (const WideSet& set : kWideSets) {
    const auto alone = choose_wide(set, one), joined = choose_wide(set, two);
    if (!joined) continue;
    EXPECT_NEAR(log2_failure(*alone, two) - 1, (alone->log2_failure - 1) / 2, 1e-9);
    EXPECT_LE(joined->log2_failure, kRequiredFailure);
    EXPECT_LE(joined->upload_bits + joined->answer_bits,
              alone->upload_bits + alone->answer_bits + 2);
  }
  two.keys_joined = 0;
  EXPECT_THROW((void)choose_wide(kWideSets[0], two), InvalidArgument);
}

TEST(WideParameters, ChoicesTakeTheFewestBitsThatServe) {
  for (int ring_bits = 1; ring_bits <= 64; ++ring_bits) {
    bool served = false;
    for (const WideSet& set : kWideSets) {
      const WideBounds given = bounds(768, ring_bits, ring_bits, 5, 2);
      const auto choice = choose_wide(set, given);
      if (!choice) continue;
      served = true;
      EXPECT_LE(choice->log2_failure, kRequiredFailure);
      EXPECT_EQ(choice->log2_failure, log2_failure(*choice, given));
      WideChoice fewer = *choice;
      --fewer.upload_bits;
      if (fewer.upload_bits > ring_bits) {
        EXPECT_GT(log2_failure(fewer, given), kRequiredFailure) << ring_bits;
      }
      fewer = *choice;
      fewer.answer_bits -= 2;
      EXPECT_GT(log2_failure(fewer, given), kRequiredFailure) << ring_bits;
      EXPECT_LE(choice->answer_bits, ring_bits + 13);
    }
    EXPECT_TRUE(served) << ring_bits;
  }
}

// Finer uploads would be off by what is left of the message modulo 1 / q, which is not random.
TEST(WideParameters, UploadsAreNoFinerThanTheModulus) {
  for (const WideSet& set : kWideSets)
    for (int ring_bits = 24; ring_bits <= 64; ++ring_bits)
      for (double inner = 1; inner <= 1 << 16; inner *= 1.002) {
        const auto choice = choose_wide(set, bounds(std::lround(inner), ring_bits, ring_bits, 0));
        if (!choice) break;
        ASSERT_LE(choice->upload_bits, set.ring.log_q) << ring_bits << " " << inner;
      }
}

TEST(WideParameters, BoundsThatAreTooTightAreRefused) {
  EXPECT_FALSE(choose_wide(kWideSets[0], bounds(64, 40, 40, 5)));
  EXPECT_TRUE(choose_wide(kWideSets[0], bounds(64, 40, 12, 0)));
  EXPECT_FALSE(choose_wide(kWideSets[1], bounds(64, 44, 44, 5)));
  EXPECT_FALSE(choose_wide(kWideSets[2], bounds(64, 64, 64, 5)));
  EXPECT_TRUE(choose_wide(kWideSets[3], bounds(i64{1} << 16, 64, 64, 10, 2)));
  EXPECT_THROW(choose_wide(kWideSets[0], bounds(0, 32, 32, 0)), InvalidArgument);
  EXPECT_THROW(choose_wide(kWideSets[0], bounds(1, 0, 1, 0)), InvalidArgument);
  EXPECT_THROW(choose_wide(kWideSets[0], bounds(1, 65, 1, 0)), InvalidArgument);
}

}  // namespace
}  // namespace privml::lattice
