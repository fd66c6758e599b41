// SPDX-License-Identifier: Apache-2.0
#include "base/divisor.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace privml {
namespace {

template <class Word>
void check(const Divisor<Word>& by, Word x) {
  const auto [quotient, remainder] = by.divide(x);
  ASSERT_EQ(quotient, x / by.divisor()) << u64{x} << " / " << u64{by.divisor()};
  ASSERT_EQ(remainder, x % by.divisor()) << u64{x} << " / " << u64{by.divisor()};
}

TEST(Divisor, EveryDivisorAndDividendOfEightBits) {
  for (u32 divisor = 1; divisor < 256; ++divisor) {
    const Divisor<u8> by(static_cast<u8>(divisor));
    for (u32 x = 0; x < 256; ++x) check<u8>(by, static_cast<u8>(x));
  }
}

// A quotient is wrong first where it changes.
TEST(Divisor, EveryDivisorOfSixteenBitsWhereItsQuotientsChange) {
  for (u32 divisor = 1; divisor < 65536; ++divisor) {
    const Divisor<u16> by(static_cast<u16>(divisor));
    for (u32 x = divisor; x < 65536; x += divisor) {
      check<u16>(by, static_cast<u16>(x - 1));
      check<u16>(by, static_cast<u16>(x));
    }
    check<u16>(by, 65535);
  }
}

TEST(Divisor, RandomAndEdgeWords) {
  std::mt19937_64 random(3);
  std::vector<u64> edges{0, 1};
  for (int bit = 1; bit < 64; ++bit) {
    for (u64 near : {-1, 0, 1}) edges.push_back((u64{1} << bit) + near);
  }
  for (u64 near = 1; near <= 5; ++near) edges.push_back(u64{0} - near);
  std::vector<u64> divisors(edges.begin() + 1, edges.end());
  for (int i = 0; i < 2000; ++i) divisors.push_back((random() >> random() % 64) | 1);
  for (const u64 divisor : divisors) {
    const PublicDivisor by(divisor);
    for (const u64 x : edges) check(by, x);
    for (int i = 0; i < 200; ++i) {
      const u64 x = random() >> random() % 64, multiple = x / divisor * divisor;
      for (const u64 near : {x, multiple, multiple - 1, multiple + divisor - 1}) check(by, near);
    }
    check(by, ~u64{0} / divisor * divisor);
    check(by, ~u64{0} / divisor * divisor - 1);
  }
}

TEST(Divisor, RefusesZero) { EXPECT_THROW(PublicDivisor(0), InvalidArgument); }

}  // namespace
}  // namespace privml
