// SPDX-License-Identifier: Apache-2.0
#include "lattice/sample.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <set>

#include "lattice/parameters.h"

namespace privml::lattice {
namespace {

TEST(LatticeSamples, TernaryFollowsItsDefinition) {
  const i64 count = 3000;
  crypto::Prg prg({1, 2}), same({1, 2});
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
  crypto::Prg prg({3, 4}), same({3, 4});
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
    crypto::Prg prg({5, 6});
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
  crypto::Prg prg({7, 8});
  for (int i = 0; i < 100; ++i) {
    i64 weight = 0;
    for (const signed char x : sample_secret(prg, 4096)) weight += x != 0;
    EXPECT_LE(weight, kMaxSecretWeight);
    EXPECT_NEAR(weight, 4096 * 2 / 3., 200);
    EXPECT_EQ(weight % 2, 1);
  }
}

// A unit times a uniform polynomial is uniform: the multiples of an odd polynomial by all
// polynomials modulo 2^2 and X^4 + 1 are all of them, and those of an even one are not.
TEST(LatticeSamples, OddPolynomialsAreUnits) {
  constexpr int kSmallN = 4, kAll = 256;
  const auto multiples = [](std::span<const signed char> s) {
    std::set<int> found;
    for (int a = 0; a < kAll; ++a) {
      std::array<int, kSmallN> product{};
      for (int i = 0; i < kSmallN; ++i)
        for (int j = 0; j < kSmallN; ++j)
          product[(i + j) % kSmallN] += (i + j < kSmallN ? 1 : -1) * s[i] * (a >> (2 * j) & 3);
      int packed = 0;
      for (int i = 0; i < kSmallN; ++i) packed |= (product[i] & 3) << (2 * i);
      found.insert(packed);
    }
    return std::ssize(found);
  };
  crypto::Prg prg({9, 9});
  for (int i = 0; i < 20; ++i) EXPECT_EQ(multiples(sample_secret(prg, kSmallN, kSmallN)), kAll);
  const std::array<signed char, kSmallN> even{1, 1, 0, 0};
  EXPECT_LT(multiples(even), kAll);
}

}  // namespace
}  // namespace privml::lattice
