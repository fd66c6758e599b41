// SPDX-License-Identifier: Apache-2.0
#include "lattice/transform.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"

namespace privml::lattice {
namespace {

constexpr std::array kBackends{Backend::portable, Backend::avx2, Backend::avx512};

std::vector<Backend> supported() {
  std::vector<Backend> out;
  for (const Backend backend : kBackends)
    if (backend_supported(backend)) out.push_back(backend);
  return out;
}

enum class Fill { random, zeros, ones, most_negative, alternating };

Words random_words(i64 n, int low_bits, Fill fill, u64 seed) {
  std::mt19937_64 random(seed);
  Words words(n);
  for (i64 i = 0; i < n; ++i) {
    u64 high = random(), low = random();
    if (fill == Fill::zeros) high = low = 0;
    if (fill == Fill::ones) high = low = ~u64{0};
    if (fill == Fill::most_negative || (fill == Fill::alternating && i % 2 == 0)) {
      high = u64{1} << 63;
      low = 0;
    } else if (fill == Fill::alternating) {
      high = (u64{1} << 63) - 1;
      low = ~u64{0};
    }
    words.high[i] = high;
    words.low[i] = static_cast<u16>(low & low_mask(low_bits));
  }
  return words;
}

using Small = std::vector<signed char>;

Small random_small(i64 n, int largest, u64 seed) {
  std::mt19937_64 random(seed);
  Small small(n);
  for (auto& x : small)
    x = static_cast<signed char>(static_cast<int>(random() % (2 * largest + 1)) - largest);
  return small;
}

// Modulo 2^(64 + low_bits), by definition.
void add_schoolbook(const Words& a, const Small& b, int low_bits, Words& out) {
  const i64 n = std::ssize(b);
  std::vector<u128> sums(n);
  for (i64 i = 0; i < n; ++i) {
    const u128 x = joined(a.high[i], a.low[i], low_bits);
    for (i64 j = 0; j < n; ++j) {
      const u128 term = x * static_cast<u128>(static_cast<__int128>(b[j]));
      sums[(i + j) % n] += i + j < n ? term : -term;
    }
  }
  for (i64 i = 0; i < n; ++i) {
    const u128 sum = joined(out.high[i], out.low[i], low_bits) + sums[i];
    out.high[i] = high_of(sum, low_bits);
    out.low[i] = low_of(sum, low_bits);
  }
}

bool same(const Words& a, const Words& b) {
  return std::equal(a.high.begin(), a.high.end(), b.high.begin()) &&
         std::equal(a.low.begin(), a.low.end(), b.low.begin());
}

TEST(NegacyclicRing, ProductsAreExactInEveryBackend) {
  for (const i64 n : {16, 32, 64, 256, 1024}) {
    for (const int low_bits : {0, 1, 8, 12, 16}) {
      for (const Fill fill :
           {Fill::random, Fill::zeros, Fill::ones, Fill::most_negative, Fill::alternating}) {
        const Words a = random_words(n, low_bits, fill, 1);
        Small b = random_small(n, 1, 2);
        if (fill == Fill::most_negative) b.assign(n, -1);
        if (fill == Fill::alternating)
          for (i64 i = 0; i < n; ++i) b[i] = i % 2 == 0 ? 1 : -1;
        Words expected = random_words(n, low_bits, Fill::random, 3);
        const Words before = expected;
        add_schoolbook(a, b, low_bits, expected);
        for (const Backend backend : supported()) {
          const NegacyclicRing ring(n, low_bits, backend);
          Words out = before;
          ring.add_product(ring.transform(a.view()), ring.transform(b), out.output());
          ASSERT_TRUE(same(out, expected))
              << n << " " << low_bits << " " << static_cast<int>(backend);
        }
      }
    }
  }
}

TEST(NegacyclicRing, LargePolynomialsOfTheLargestCoefficients) {
  for (const i64 n : {4096, 8192}) {
    const int low_bits = kMostLowBits;
    const Words a = random_words(n, low_bits, Fill::most_negative, 1);
    const Small b(n, static_cast<signed char>((1 << 15) / n));  // true coefficients reach 2^94
    Words expected(n);
    std::fill(expected.high.begin(), expected.high.end(), 0);
    std::fill(expected.low.begin(), expected.low.end(), 0);
    Words zero = expected;
    add_schoolbook(a, b, low_bits, expected);
    for (const Backend backend : supported()) {
      const NegacyclicRing ring(n, low_bits, backend);
      Words out = zero;
      ring.add_product(ring.transform(b), ring.transform(a.view()), out.output());
      ASSERT_TRUE(same(out, expected)) << n << " " << static_cast<int>(backend);
    }
  }
}

TEST(NegacyclicRing, SumsOfManyProducts) {
  const i64 n = 256;
  for (const i64 count : {1, 8, 40})
    for (const Backend backend : supported()) {
      const NegacyclicRing ring(n, 8, backend);
      std::vector<Transformed> x, y;
      Words expected = random_words(n, 8, Fill::random, 7);
      Words out = expected;
      for (i64 i = 0; i < count; ++i) {
        const Words a = random_words(n, 8, Fill::random, 10 + i);
        const Small b = random_small(n, 127, 100 + i);
        x.push_back(ring.transform(a.view()));
        y.push_back(ring.transform(b));
        add_schoolbook(a, b, 8, expected);
      }
      ring.add_products(x, y, out.output());
      ASSERT_TRUE(same(out, expected)) << count << " " << static_cast<int>(backend);
    }
}

TEST(NegacyclicRing, BackendsAgreeAtFullLength) {
  const i64 n = 4096;
  const Words a = random_words(n, 8, Fill::random, 5);
  const Small b = random_small(n, 2, 6);
  const NegacyclicRing portable(n, 8, Backend::portable);
  Words expected = random_words(n, 8, Fill::random, 7);
  const Words before = expected;
  portable.add_product(portable.transform(a.view()), portable.transform(b), expected.output());
  for (const Backend backend : supported()) {
    const NegacyclicRing ring(n, 8, backend);
    Words out = before;
    ring.add_product(ring.transform(a.view()), ring.transform(b), out.output());
    EXPECT_TRUE(same(out, expected)) << static_cast<int>(backend);
  }
}

TEST(NegacyclicRing, RefusesOtherSizes) {
  EXPECT_THROW(NegacyclicRing(8, 0), InvalidArgument);
  EXPECT_THROW(NegacyclicRing(4095, 0), InvalidArgument);
  EXPECT_THROW(NegacyclicRing(16384, 0), InvalidArgument);
  EXPECT_THROW(NegacyclicRing(4096, 17), InvalidArgument);
  EXPECT_THROW(NegacyclicRing(4096, -1), InvalidArgument);
  const NegacyclicRing ring(16, 0);
  EXPECT_THROW(ring.transform(Small(15)), InvalidArgument);
}

}  // namespace
}  // namespace privml::lattice
