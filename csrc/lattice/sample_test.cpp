// SPDX-License-Identifier: Apache-2.0
#include "lattice/sample.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>

#include "lattice/parameters.h"

namespace privml::lattice {
namespace {

TEST(LatticeSamples, TernaryFollowsItsDefinition) {
  const i64 count = 3000;
  Prg prg({1, 2}), same({1, 2});
  Small out(count);
  sample_ternary(prg, out);
  std::vector<u64> random(1024);
  std::map<int, i64> seen;
  for (i64 i = 0; i < count; ++i) {
    if (i % 1024 == 0) same.fill_ring(std::span(random).first(std::min<i64>(1024, count - i)), 64);
    const u128 thirds = u128{random[i % 1024]} * 3 >> 64;
    ASSERT_EQ(out[i], static_cast<int>(thirds) - 1);
    ++seen[out[i]];
  }
  for (const int value : {-1, 0, 1}) EXPECT_NEAR(seen[value], 1000, 6 * 25.8);
}

TEST(LatticeSamples, ErrorsAreDifferencesOfSumsOfBits) {
  const i64 count = 100'000;
  Prg prg({3, 4}), same({3, 4});
  Small out(count);
  sample_error(prg, out);
  std::vector<u64> random(1024);
  double squares = 0, sum = 0;
  for (i64 i = 0; i < count; ++i) {
    if (i % 1024 == 0) same.fill_ring(std::span(random).first(std::min<i64>(1024, count - i)), 64);
    const u64 pairs = low_mask(kErrorPairs), word = random[i % 1024];
    ASSERT_EQ(out[i], std::popcount(word & pairs) - std::popcount(word >> kErrorPairs & pairs));
    squares += out[i] * out[i];
    sum += out[i];
  }
  EXPECT_NEAR(squares / count, kErrorPairs / 2., 0.3);
  EXPECT_NEAR(sum / count, 0, 0.06);
}

TEST(LatticeSamples, UniformWordsFillTheirBitsAndNoOthers) {
  for (const int low_bits : {0, 8, 12, 16}) {
    Words words(4096);
    Prg prg({5, 6});
    sample_uniform(prg, low_bits, words.output());
    u64 high = 0, low = 0, high_and = ~u64{0}, low_and = ~u64{0};
    for (i64 i = 0; i < 4096; ++i) {
      high |= words.high[i];
      low |= words.low[i];
      high_and &= words.high[i];
      low_and &= words.low[i];
    }
    EXPECT_EQ(high, ~u64{0});
    EXPECT_EQ(high_and, 0U);
    EXPECT_EQ(low, low_mask(low_bits));
    EXPECT_EQ(low_and, 0U);
  }
}

TEST(LatticeSamples, SecretsHaveTheWeightThatBoundsCountOn) {
  Prg prg({7, 8});
  for (int i = 0; i < 100; ++i) {
    i64 weight = 0;
    for (const signed char x : sample_secret(prg, 4096)) weight += x != 0;
    EXPECT_LE(weight, kMaxSecretWeight);
    EXPECT_NEAR(weight, 4096 * 2 / 3., 200);
  }
}

}  // namespace
}  // namespace privml::lattice
