// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/preprocessing/bucketing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "crypto/prg.h"

namespace privml::spdz2k {
namespace {

// Tries beyond a full bucket that are looked at one by one; more are rarer than that many.
constexpr i64 kTries = 256;
constexpr int kLargestSize = 64;

}  // namespace

double log2_binomial(i64 n, i64 k) {
  expect(0 <= k && k <= n, "binomial: k must be in 0..n");
  k = std::min(k, n - k);
  double sum = 0;
  // Few factors exactly, many by the gamma function.
  if (k <= 4096) {
    for (i64 i = 0; i < k; ++i) {
      sum += std::log2(static_cast<double>(n - i)) - std::log2(static_cast<double>(i + 1));
    }
    return sum;
  }
  const auto log_factorial = [](i64 m) { return std::lgamma(static_cast<double>(m) + 1); };
  return (log_factorial(n) - log_factorial(k) - log_factorial(n - k)) / std::log(2.0);
}

double leaky_bucket_security(i64 buckets, int size) {
  expect(buckets >= kFewestBuckets && size >= 2, "bucketing: too few or too small buckets");
  const double n = static_cast<double>(buckets), all = log2_binomial(buckets * size, size);
  const auto touched = [n](double u) { return -u + u * u / (n - 1) / std::log(2.0); };
  // Beyond the last try some bucket is full with probability 1 at most, so that
  // E[2^-c'] alone counts; it falls with the number of tries.
  double worst = std::log2(n) + touched(kTries);
  for (i64 u = 0; u <= kTries; ++u) {
    const double full = std::log2(n) + log2_binomial(size + u, size) - all;
    worst = std::max(worst, full - 1 + touched(static_cast<double>(u)));
  }
  return -worst;
}

int leaky_bucket_size(i64 buckets, int bits) {
  int size = 2;
  while (leaky_bucket_security(buckets, size) < bits) {
    expect(++size <= kLargestSize, "bucketing: no bucket is large enough");
  }
  return size;
}

double number_bucket_security(i64 heads, int size, i64 opened) {
  expect(heads >= 1 && size >= 2 && opened >= 0, "bucketing: wrong numbers");
  const i64 others = NumberBuckets{size, opened}.others(heads);
  return std::min(log2_binomial(others, size - 1), log2_binomial(others, opened));
}

NumberBuckets number_buckets(i64 heads, int bits) {
  expect(heads >= 1, "bucketing: no numbers");
  NumberBuckets best;
  i64 fewest = 0;
  for (int size = 2; size <= kLargestSize; ++size) {
    for (i64 opened = 1; opened <= kLargestSize; ++opened) {
      const NumberBuckets candidate{size, opened};
      if (number_bucket_security(heads, size, opened) < bits) continue;
      if (fewest == 0 || candidate.others(heads) < fewest) {
        best = candidate;
        fewest = candidate.others(heads);
      }
      break;
    }
  }
  expect(fewest > 0, "bucketing: no bucket is large enough");
  return best;
}

std::vector<u32> random_permutation(crypto::Block seed, i64 n) {
  expect(0 <= n && n <= i64{1} << 31, "permutation: too long");
  constexpr i64 kChunk = 1024;
  std::vector<u32> order(n);
  std::iota(order.begin(), order.end(), u32{0});
  crypto::Prg prg(seed);
  std::array<u64, kChunk> random;
  for (i64 first = 0; first < n; first += kChunk) {
    const i64 count = std::min(kChunk, n - first);
    prg.fill_ring({random.data(), static_cast<std::size_t>(count)}, 64);
    for (i64 i = 0; i < count; ++i) {
      const u64 left = static_cast<u64>(n - first - i);
      const u64 pick = static_cast<u64>(static_cast<u128>(random[i]) * left >> 64);
      std::swap(order[first + i], order[first + i + static_cast<i64>(pick)]);
    }
  }
  return order;
}

}  // namespace privml::spdz2k
