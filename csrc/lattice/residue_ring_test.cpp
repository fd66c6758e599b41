// SPDX-License-Identifier: Apache-2.0
#include "lattice/residue_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/error.h"
#include "lattice/sample.h"
#include "lattice/wide_parameters.h"

namespace privml::lattice {
namespace {

std::vector<Backend> backends() {
  std::vector<Backend> out;
  for (const Backend backend : {Backend::portable, Backend::avx2, Backend::avx512})
    if (backend_supported(backend)) out.push_back(backend);
  return out;
}

std::vector<u64> primes_of(const WideSet& set) { return {set.used().begin(), set.used().end()}; }

i64 modulo(double x, u64 p) {
  const i64 y = static_cast<i64>(x) % static_cast<i64>(p);
  return y < 0 ? y + static_cast<i64>(p) : y;
}

// Coefficients below 2^20, so that products are exact in 64 bits.
Residues polynomial(const ResidueRing& ring, const std::vector<i64>& values) {
  Residues out(ring.size());
  for (int i = 0; i < ring.moduli(); ++i)
    for (i64 j = 0; j < ring.n(); ++j) out[i * ring.n() + j] = static_cast<double>(values[j]);
  return out;
}

std::vector<i64> random_small(i64 n, u64 seed) {
  std::mt19937_64 random(seed);
  std::vector<i64> out(n);
  for (i64& x : out) x = static_cast<i64>(random() % (1 << 21)) - (1 << 20);
  return out;
}

TEST(ResidueRing, ProductsAreNegacyclicOnEveryBackend) {
  for (const Backend backend : backends())
    for (const WideSet& set : kWideSets)
      for (const i64 n : {16, 64}) {
        const ResidueRing ring(n, primes_of(set), backend);
        const std::vector<i64> a = random_small(n, 1), b = random_small(n, 2);
        std::vector<i64> expected(n);
        for (i64 i = 0; i < n; ++i)
          for (i64 j = 0; j < n; ++j) expected[(i + j) % n] += (i + j < n ? 1 : -1) * a[i] * b[j];
        Residues x = polynomial(ring, a), y = polynomial(ring, b);
        ring.transform(x, n);
        ring.transform(y, n);
        Residues out = ring.product(x, y);
        // And ten times the same product, minus nine.
        const std::vector<const Residues*> left(10, &x), right(10, &y);
        Residues sum = ring.product(x, y);
        for (double& z : sum) z *= -9;
        ring.reduce(sum);
        ring.add_products(left, right, false, sum);
        Residues total = ring.product(x, y), difference(ring.size());
        ring.combine(x, y, total, difference);
        ring.restore(out);
        ring.restore(sum);
        ring.restore(total);
        ring.restore(difference);
        for (int i = 0; i < ring.moduli(); ++i)
          for (i64 j = 0; j < n; ++j) {
            const u64 p = set.primes[i];
            const i64 e = modulo(static_cast<double>(expected[j] % static_cast<i64>(p)), p);
            ASSERT_EQ(modulo(out[i * n + j], p), e);
            ASSERT_EQ(modulo(sum[i * n + j], p), e);
            ASSERT_EQ(modulo(total[i * n + j], p), 2 * e % static_cast<i64>(p));
            ASSERT_EQ(modulo(difference[i * n + j], p), 0);
          }
      }
}

TEST(ResidueRing, TransformsOfFewCoefficientsAreThoseWithZeros) {
  for (const Backend backend : backends()) {
    const ResidueRing ring(256, primes_of(kWideSets[0]), backend);
    for (i64 used = 1; used <= 256; used *= 2) {
      std::vector<i64> values = random_small(256, 3);
      for (i64 i = used; i < 256; ++i) values[i] = 0;
      Residues whole = polynomial(ring, values), part = whole;
      for (i64 j = used; j < 256; ++j) part[j] = part[256 + j] = 12345;  // not read
      ring.transform(whole, 256);
      ring.transform(part, used);
      EXPECT_EQ(whole, part) << used;
    }
  }
}

TEST(ResidueRing, RowsOfShortPolynomialsAreMultipliedAsWholeOnes) {
  struct Case {
    i64 n, count, rows, used;
  };
  for (const Backend backend : backends())
    for (const auto& [n, count, rows, used] :
         {Case{16, 1, 1, 16}, Case{64, 3, 2, 16}, Case{64, 9, 1, 64}, Case{8192, 1, 2, 16},
          Case{8192, 20, 3, 64}, Case{8192, 2, 1, 8192}}) {
      const WideSet& set = kWideSets[2];
      const ResidueRing ring(n, primes_of(set), backend);
      std::vector<ResiduePair> pairs(count), out(rows);
      for (i64 k = 0; k < count; ++k) {
        pairs[k] = {polynomial(ring, random_small(n, 100 + k)),
                    polynomial(ring, random_small(n, 200 + k))};
        for (Residues* half : {&pairs[k].c0, &pairs[k].c1}) ring.transform(*half, n);
      }
      const std::vector<i64> small = random_small(rows * count * used, 7);
      std::vector<double> first;
      for (int i = 0; i < ring.moduli(); ++i) first.insert(first.end(), small.begin(), small.end());
      for (ResiduePair& row : out) row = {Residues(ring.size()), Residues(ring.size())};
      ring.multiply_rows(pairs, first, used, true, out);
      for (i64 row = 0; row < rows; ++row)
        for (const bool second : {false, true}) {
          Residues expected(ring.size());
          std::ranges::fill(expected, 0.);
          for (i64 k = 0; k < count; ++k) {
            std::vector<i64> values(n);
            std::copy_n(small.begin() + (row * count + k) * used, used, values.begin());
            Residues factor = polynomial(ring, values);
            ring.transform(factor, n);
            const Residues *const by[] = {&factor}, *const of[] = {second ? &pairs[k].c1
                                                                          : &pairs[k].c0};
            ring.add_products(of, by, false, expected);
          }
          const Residues& found = second ? out[row].c1 : out[row].c0;
          for (i64 i = 0; i < ring.size(); ++i)
            ASSERT_EQ(modulo(found[i], set.primes[i / n]), modulo(expected[i], set.primes[i / n]));
        }
    }
}

TEST(ResidueRing, NumbersComeBackFromFractionsOfTheModulus) {
  std::mt19937_64 random(4);
  for (const Backend backend : backends())
    for (const WideSet& set : kWideSets) {
      const ResidueRing ring(64, primes_of(set), backend);
      for (const int bits : {1, 33, 64, 70, set.ring.log_q - 2}) {
        TorusVector t(64);
        for (Torus& x : t) x = floor_of({random(), random(), random()}, bits);
        const TorusVector back = ring.to_torus(ring.of_torus(t));
        for (i64 j = 0; j < 64; ++j) {
          const Torus difference = back[j] - t[j], found = rounded(back[j], bits);
          // Half of 1 / q, and the fixed point's own error.
          const Torus bound = power_of_half(set.ring.log_q);
          EXPECT_TRUE(difference.high <= bound.high || (-difference).high <= bound.high);
          EXPECT_TRUE(found.high == t[j].high && found.middle == t[j].middle &&
                      found.low == t[j].low);
        }
      }
    }
}

// An error of one sign in every coefficient would add up in sums of products.
TEST(ResidueRing, FractionsOfTheModulusAreRoundedByLessThanAMillionthOfIt) {
  for (const WideSet& set : kWideSets) {
    const ResidueRing ring(64, primes_of(set));
    const Residues a = ring.uniform({3, 9});
    Residues negative(ring.size());
    for (i64 i = 0; i < ring.size(); ++i) {
      const u64 p = set.primes[i / 64], number = modulo(a[i], p);
      negative[i] = number == 0 ? 0 : static_cast<double>(p - number);
    }
    const TorusVector x = ring.to_torus(a), y = ring.to_torus(negative);
    for (i64 j = 0; j < 64; ++j) {
      const Torus sum = -(x[j] + y[j]);  // both are rounded down
      EXPECT_TRUE(sum.high == 0 && sum.middle == 0 && sum.low <= u64{4} * ring.moduli());
    }
  }
}

TEST(ResidueRing, DigitsAreTheFirstBitsAlikeOnEveryBackend) {
  for (const WideSet& set : kWideSets) {
    std::array<Residues, 2> digits;
    for (const Backend backend : backends()) {
      const ResidueRing ring(4096, primes_of(set), backend);
      const Residues a = ring.uniform({7, 7});
      Residues first(ring.size()), second(ring.size());
      ring.digits(a, set.digit_bits, first, second);
      if (backend == Backend::portable) digits = {first, second};
      EXPECT_EQ(first, digits[0]);
      EXPECT_EQ(second, digits[1]);
      const TorusVector whole = ring.to_torus(a);
      for (i64 j = 0; j < ring.n(); ++j) {
        const auto scaled = [&](double digit, int bits) {  // digit / 2^bits
          const Torus unit = power_of_half(bits);
          Torus sum{};
          const u64 size = static_cast<u64>(std::abs(digit));
          for (int i = 0; i < 64; ++i) {
            Torus part = unit;
            for (int k = 0; k < i; ++k) part = part + part;
            if (size >> i & 1) sum = sum + part;
          }
          return digit < 0 ? -sum : sum;
        };
        Torus rest =
            whole[j] - scaled(first[j], set.digit_bits) - scaled(second[j], 2 * set.digit_bits);
        if (rest.high >> 63) rest = -rest;
        const Torus bound = power_of_half(2 * set.digit_bits);
        ASSERT_LE(rest.high, bound.high);
        ASSERT_TRUE(rest.high < bound.high || rest.middle <= bound.middle);
        ASSERT_LE(std::abs(first[j]), std::exp2(set.digit_bits - 1));
        ASSERT_LE(std::abs(second[j]), 1.05 * std::exp2(set.digit_bits - 1));
        ASSERT_EQ(first[j], first[ring.n() + j]);
        ASSERT_EQ(second[j], second[ring.n() + j]);
      }
    }
  }
}

TEST(ResidueRing, WordsAreHalvedModuloTheModulus) {
  for (const Backend backend : backends()) {
    const WideSet& set = kWideSets[3];
    const ResidueRing ring(16, primes_of(set), backend);
    const std::vector<u64> words{0, 1, ~u64{0}, u64{1} << 63, (u64{1} << 63) - 1, 12345, 6, 7};
    for (const int halvings : {0, 1, 5, 13}) {
      Residues out(ring.moduli() * std::ssize(words));
      ring.words(words, halvings, out);
      for (int i = 0; i < ring.moduli(); ++i)
        for (size_t j = 0; j < words.size(); ++j) {
          const i64 p = static_cast<i64>(set.primes[i]);
          i64 x = modulo(out[i * std::ssize(words) + static_cast<i64>(j)], set.primes[i]);
          for (int k = 0; k < halvings; ++k) x = 2 * x % p;
          const i64 word = static_cast<i64>(words[j]) % p;
          EXPECT_EQ(x, word < 0 ? word + p : word);
        }
    }
  }
}

TEST(ResidueRing, ImagesMoveThePlacesOfTransforms) {
  for (const Backend backend : backends())
    for (const i64 n : {64, 256})
      for (const i64 power : {i64{3}, n / 2 + 1, n + 1, 2 * n - 1}) {
        const ResidueRing ring(n, primes_of(kWideSets[2]), backend);
        const std::vector<i64> a = random_small(n, 5);
        std::vector<i64> image(n);
        for (i64 i = 0; i < n; ++i) {
          const i64 at = i * power % (2 * n);
          image[at % n] = at < n ? a[i] : -a[i];
        }
        Residues x = polynomial(ring, a), y = polynomial(ring, image);
        ring.transform(x, n);
        ring.transform(y, n);
        Residues moved(ring.size()), twice(ring.size());
        ring.move(x, ring.places(power), moved);
        std::ranges::copy(moved, twice.begin());
        ring.add_moved(x, ring.places(power), twice);
        for (int i = 0; i < ring.moduli(); ++i)
          for (i64 j = 0; j < n; ++j)
            ASSERT_EQ(modulo(moved[i * n + j], kWideSets[2].primes[i]),
                      modulo(y[i * n + j], kWideSets[2].primes[i]));
        for (size_t j = 0; j < moved.size(); ++j) ASSERT_EQ(twice[j], 2 * moved[j]);
      }
}

TEST(ResidueRing, UniformNumbersAreOfTheirSeedAlone) {
  const ResidueRing ring(4096, primes_of(kWideSets[3]));
  EXPECT_EQ(ring.uniform({1, 2}), ring.uniform({1, 2}));
  EXPECT_NE(ring.uniform({1, 2}), ring.uniform({2, 2}));
  const Residues a = ring.uniform({1, 2});
  double sum = 0;
  for (const double x : a) sum += x;
  const double p = static_cast<double>(kWideSets[3].primes[0]);
  EXPECT_LT(std::abs(sum), 6 * p * std::sqrt(static_cast<double>(a.size()) / 12));
  for (const double x : a) ASSERT_LE(std::abs(x), p / 2);
}

TEST(ResidueRing, WireHoldsResiduesBelowTheirPrimesAlone) {
  for (const WideSet& set : kWideSets) {
    const ResidueRing ring(set.ring.n, primes_of(set));
    EXPECT_EQ(ring.bytes(), set.ring.n * set.ring.log_q / 8);
    const Residues a = ring.uniform({3, 4});
    std::vector<u8> wire(ring.bytes());
    ring.write(a, wire);
    EXPECT_EQ(ring.read(wire), a);
    for (i64 i = 0; i < (set.ring.log_q / set.moduli + 7) / 8; ++i) wire[i] = 0xff;
    EXPECT_THROW(ring.read(wire), ProtocolError);
    wire.pop_back();
    EXPECT_THROW(ring.read(wire), ProtocolError);
  }
}

TEST(ResidueRing, RefusesPrimesThatDoNotFit) {
  const std::array<u64, 1> small{786433}, large{562949953216513};  // of 20 and 49 bits
  EXPECT_NO_THROW(ResidueRing(4096, small));
  EXPECT_THROW(ResidueRing(4096, large), InvalidArgument);
  const std::array<u64, 1> prime{kWideSets[0].primes[0]};
  EXPECT_THROW(ResidueRing(4095, prime), InvalidArgument);
  const std::array<u64, 1> other{1099511480323};
  EXPECT_THROW(ResidueRing(4096, other), InvalidArgument);
  EXPECT_THROW(ResidueRing(4096, std::span<const u64>{}), InvalidArgument);
}

TEST(ResidueRing, PrimesOfOtherLengthsComeBackFromTheWireAndTheTorus) {
  const std::array<u64, 3> primes{137438822401, 33538049, 33349633};
  for (const Backend backend : backends()) {
    const ResidueRing ring(4096, primes, backend);
    const Residues a = ring.uniform({3, 4});
    std::vector<u8> wire(ring.bytes());
    EXPECT_EQ(std::ssize(wire), 4096 * (37 + 25 + 25) / 8);
    ring.write(a, wire);
    EXPECT_EQ(ring.read(wire), a);
    const Residues back = ring.of_torus(ring.to_torus(a));
    for (i64 i = 0; i < ring.size(); ++i)
      ASSERT_EQ(modulo(back[i], primes[i / 4096]), modulo(a[i], primes[i / 4096])) << i;
  }
}

}  // namespace
}  // namespace privml::lattice
