// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/preprocessing/bucketing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace privml::spdz2k {
namespace {

TEST(Bucketing, BinomialCoefficients) {
  EXPECT_NEAR(log2_binomial(10, 3), std::log2(120.0), 1e-9);
  EXPECT_NEAR(log2_binomial(10, 7), std::log2(120.0), 1e-9);
  EXPECT_EQ(log2_binomial(10, 0), 0);
  // Both ways of computing it, at the length where they meet: C(n, k+1) = C(n, k) (n-k) / (k+1).
  const double step = std::log2((20000.0 - 4096) / 4097);
  EXPECT_NEAR(log2_binomial(20000, 4097) - log2_binomial(20000, 4096), step, 1e-6);
}

// The exact probability for `tries` tries: the peer passes with 2^-(touched buckets) and wins if
// one of them is full. Sums over all ways in which the buckets can be filled, bucket by bucket.
double exact_leak(i64 buckets, int size, int tries) {
  std::vector<std::array<double, 2>> ways(tries + 1, {0, 0});  // by used tries; [1]: one is full
  ways[0] = {1, 0};
  for (i64 b = 0; b < buckets; ++b) {
    std::vector<std::array<double, 2>> next(tries + 1, {0, 0});
    for (int used = 0; used <= tries; ++used) {
      for (int more = 0; more <= size && used + more <= tries; ++more) {
        const double weight = std::exp2(log2_binomial(size, more)) * (more > 0 ? 0.5 : 1.0);
        for (int full : {0, 1})
          next[used + more][full || more == size] += weight * ways[used][full];
      }
    }
    ways = next;
  }
  return ways[tries][1] / std::exp2(log2_binomial(buckets * size, tries));
}

TEST(Bucketing, TheBoundForLeakyTriplesHolds) {
  for (const int size : {2, 3, 4}) {
    double worst = 0;
    for (int tries = size; tries <= size + 12; ++tries) {
      worst = std::max(worst, exact_leak(kFewestBuckets, size, tries));
    }
    const double bound = leaky_bucket_security(kFewestBuckets, size);
    EXPECT_LE(bound, -std::log2(worst)) << size;
    EXPECT_GE(bound, -std::log2(worst) - 0.5) << size;  // and is not far off
  }
}

TEST(Bucketing, SizesForTheRings) {
  const struct {
    i64 buckets;
    int bits, size;
  } rows[] = {{1024, 57, 7}, {1 << 14, 57, 5}, {1 << 17, 57, 5}, {1 << 19, 57, 4},
              {1024, 26, 4}, {1 << 14, 26, 3}, {1 << 19, 26, 3}, {1024, 4, 2}};
  for (const auto& row : rows) {
    EXPECT_EQ(leaky_bucket_size(row.buckets, row.bits), row.size) << row.buckets << " " << row.bits;
    EXPECT_GE(leaky_bucket_security(row.buckets, row.size), row.bits);
    if (row.size > 2) {
      EXPECT_LT(leaky_bucket_security(row.buckets, row.size - 1), row.bits);
    }
  }
}

// With two heads and few others every assignment can be tried: how often do all comparisons hold
// although heads are wrong, for the best choice of how many others are wrong?
TEST(Bucketing, TheBoundForNumbersIsExact) {
  for (const auto [heads, size, opened] : {std::array{2, 3, 2}, {2, 2, 3}, {3, 2, 2}}) {
    const int others = static_cast<int>(NumberBuckets{size, opened}.others(heads));
    double best = 0;
    for (int wrong_heads = 1; wrong_heads <= heads; ++wrong_heads) {
      for (int wrong = 0; wrong <= others; ++wrong) {
        std::vector<int> order(others, 0);
        std::fill(order.end() - wrong, order.end(), 1);
        i64 all = 0, undetected = 0;
        do {
          bool holds = true;
          for (int place = 0; place < others; ++place) {
            const int head = place / (size - 1);
            holds &= order[place] == (head < wrong_heads && head < heads);
          }
          ++all;
          undetected += holds;
        } while (std::next_permutation(order.begin(), order.end()));
        best = std::max(best, static_cast<double>(undetected) / static_cast<double>(all));
      }
    }
    EXPECT_NEAR(-std::log2(best), number_bucket_security(heads, size, opened), 1e-9);
  }
}

TEST(Bucketing, BucketsOfNumbersAreSafeAndSmallest) {
  for (const int bits : {4, 26, 57}) {
    for (const i64 heads : {1, 10, 1000, 1 << 16}) {
      const NumberBuckets buckets = number_buckets(heads, bits);
      EXPECT_GE(number_bucket_security(heads, buckets.size, buckets.opened), bits);
      if (buckets.opened > 1) {
        EXPECT_LT(number_bucket_security(heads, buckets.size, buckets.opened - 1), bits);
      }
    }
  }
  EXPECT_EQ(number_buckets(1 << 16, 57).size, 5);
  EXPECT_EQ(number_buckets(1 << 16, 26).size, 3);
}

TEST(Bucketing, PermutationsAreUniform) {
  std::array<i64, 24> seen{};
  for (u64 seed = 0; seed < 24000; ++seed) {
    const std::vector<u32> order = random_permutation({seed, 7}, 4);
    std::array<u32, 4> first{0, 1, 2, 3};
    i64 number = 0;
    while (!std::equal(first.begin(), first.end(), order.begin())) {
      std::next_permutation(first.begin(), first.end());
      ASSERT_LT(++number, 24);
    }
    ++seen[number];
  }
  // Chi-squared with 23 degrees of freedom exceeds 70 with probability 1e-6; the seeds are fixed.
  double chi = 0;
  for (const i64 count : seen) chi += std::pow(static_cast<double>(count) - 1000, 2) / 1000;
  EXPECT_LT(chi, 70);
  std::vector<u32> longer = random_permutation({1, 2}, 5000);
  std::sort(longer.begin(), longer.end());
  for (u32 i = 0; i < 5000; ++i) ASSERT_EQ(longer[i], i);
}

}  // namespace
}  // namespace privml::spdz2k
