// SPDX-License-Identifier: Apache-2.0
#include "threepc/ring.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "threepc/kernels.h"

namespace privml::threepc {
namespace {

using Words = std::vector<u64>;
using Bits = std::vector<u8>;

// Two additive shares of each value.
struct Shared {
  Words of[2];
  Shared(const Words& values, std::mt19937_64& random) {
    for (u64 v : values) {
      of[0].push_back(random());
      of[1].push_back(v - of[0].back());
    }
  }
};

// Values of `bits` bits: all pairs where that is few, otherwise random ones.
void draw_pairs(int bits, std::mt19937_64& random, Words& a, Words& b) {
  if (bits <= 5) {
    for (u64 x = 0; x < u64{1} << bits; ++x)
      for (u64 y = 0; y < u64{1} << bits; ++y) a.push_back(x), b.push_back(y);
    return;
  }
  for (int i = 0; i < 10001; ++i) a.push_back(random()), b.push_back(random());
}

Words map(const Words& a, const Words& b, auto&& f) {
  Words out;
  for (size_t i = 0; i < a.size(); ++i) out.push_back(f(a[i], b[i]));
  return out;
}

TEST(Ring, ProductsOpenToTheMaskedProduct) {
  for (int bits : {1, 3, 32, 64}) {
    std::mt19937_64 random(bits);
    Words m_x, m_y, r_x, r_y, r_z;
    draw_pairs(bits, random, m_x, m_y);
    for (size_t i = 0; i < m_x.size(); ++i) {
      r_x.push_back(random());
      r_y.push_back(random());
      r_z.push_back(random());
    }
    Words dealt = map(r_x, r_y, [](u64 a, u64 b) { return a * b; });
    dealt = map(dealt, r_z, [](u64 a, u64 b) { return a + b; });
    const Shared x(r_x, random), y(r_y, random), d(dealt, random);
    Words z[2] = {Words(m_x.size()), Words(m_x.size())};
    for (int p : {0, 1})
      product_shares(p, m_x.data(), x.of[p].data(), m_y.data(), y.of[p].data(), d.of[p].data(),
                     std::ssize(m_x), bits, z[p].data(), 1 + p);
    for (size_t i = 0; i < m_x.size(); ++i) {
      ASSERT_EQ((z[0][i] + z[1][i] - r_z[i]) & low_mask(bits),
                ((m_x[i] - r_x[i]) * (m_y[i] - r_y[i])) & low_mask(bits));
      ASSERT_LE(z[0][i], low_mask(bits));
    }
  }
}

TEST(Ring, SelectionsAndBits) {
  for (int bits : {1, 4, 32, 64}) {
    for (u64 m_b : {0, 1}) {
      for (u64 r_b : {0, 1}) {
        std::mt19937_64 random(bits);
        Words m, r, r_z;
        draw_pairs(bits, random, m, r);
        for (size_t i = 0; i < m.size(); ++i) r_z.push_back(random());
        const Bits bit(m.size(), static_cast<u8>(m_b));
        const Shared a(r, random), rb(Words(m.size(), r_b), random), z(r_z, random),
            product(map(r, r, [&](u64 v, u64) { return r_b * v; }), random);
        Words s[2] = {Words(m.size()), Words(m.size())}, c[2] = {Words(m.size()), Words(m.size())};
        for (int p : {0, 1}) {
          selection_shares(p, bit.data(), m.data(), a.of[p].data(), rb.of[p].data(),
                           product.of[p].data(), z.of[p].data(), std::ssize(m), bits, s[p].data(),
                           2);
          bit_shares(p, bit.data(), rb.of[p].data(), z.of[p].data(), std::ssize(m), bits,
                     c[p].data());
        }
        for (size_t i = 0; i < m.size(); ++i) {
          ASSERT_EQ((s[0][i] + s[1][i] - r_z[i]) & low_mask(bits),
                    ((m_b ^ r_b) * (m[i] - r[i])) & low_mask(bits));
          ASSERT_EQ((c[0][i] + c[1][i] - r_z[i]) & low_mask(bits), m_b ^ r_b);
        }
      }
    }
  }
}

// floor(x / 2^fraction) or one more, for every r and every x the formula is for.
void check_truncation(int bits, int fraction, const Words& xs, const Words& r,
                      std::mt19937_64& random) {
  Words m, high, wrap, r_z;
  const u64 ring = low_mask(bits);
  for (size_t i = 0; i < r.size(); ++i) {
    m.push_back((xs[i] + r[i]) & ring);
    high.push_back((r[i] & ring) >> fraction);
    wrap.push_back((r[i] >> (bits - 1) & 1) << (bits - fraction));
    r_z.push_back(random());
  }
  const Shared h(high, random), w(wrap, random), z(r_z, random);
  Words y[2] = {Words(m.size()), Words(m.size())};
  for (int p : {0, 1})
    truncation_shares(p, m.data(), h.of[p].data(), w.of[p].data(), z.of[p].data(), std::ssize(m),
                      bits, fraction, y[p].data());
  for (size_t i = 0; i < m.size(); ++i) {
    const i64 expected = to_signed(xs[i] & ring, bits) >> fraction;
    const i64 error = to_signed((y[0][i] + y[1][i] - r_z[i] - expected) & ring, bits);
    ASSERT_TRUE(error == 0 || error == 1)
        << "bits " << bits << " fraction " << fraction << " x " << xs[i] << " r " << r[i];
  }
}

TEST(Ring, TruncationIsExactToOneUnit) {
  std::mt19937_64 random(4);
  for (int bits : {4, 6, 8}) {
    const i64 bound = i64{1} << (bits - 2);
    for (int fraction = 1; fraction < bits - 1; ++fraction) {
      Words xs, r;
      for (i64 x = -bound; x < bound; ++x)
        for (i64 mask = 0; mask < i64{1} << bits; ++mask) {
          xs.push_back(static_cast<u64>(x));
          r.push_back(static_cast<u64>(mask));
        }
      check_truncation(bits, fraction, xs, r, random);
    }
  }
  for (auto [bits, fraction] : {std::pair{32, 13}, {64, 26}, {64, 62}, {37, 1}}) {
    const i64 bound = i64{1} << (bits - 2);
    Words xs = {static_cast<u64>(-bound), static_cast<u64>(bound - 1), 0, ~u64{0}};
    while (xs.size() < 100000)
      xs.push_back(static_cast<u64>(static_cast<i64>(random() & low_mask(bits - 1)) - bound));
    Words r(xs.size());
    for (auto& v : r) v = random();
    check_truncation(bits, fraction, xs, r, random);
  }
}

TEST(Ring, LookupsInSeveralTables) {
  std::mt19937_64 random(9);
  for (int size : {1, 2, 8, 64, 256}) {
    const i64 kinds = 3;
    Words tables, turned, m, r, hot;
    for (i64 i = 0; i < kinds * size; ++i) tables.push_back(random());
    for (i64 k = 0; k < kinds; ++k)
      for (int i = 0; i < 2 * size; ++i)
        turned.push_back(tables[k * size + (2 * size - 1 - i) % size]);
    const int pairs = size <= 8 ? size * size : 4 * size;  // all of them where that is few
    for (int i = 0; i < pairs; ++i) {
      m.push_back(random() / size * size + static_cast<u64>(i % size));  // high bits are ignored
      r.push_back(static_cast<u64>(size <= 8 ? i / size : random() % size));
      for (int j = 0; j < size; ++j) hot.push_back(r.back() == static_cast<u64>(j));
    }
    const Shared d(hot, random);
    for (int bits : {32, 64}) {
      Words y[2] = {Words(kinds * pairs), Words(kinds * pairs)};
      for (int p : {0, 1})
        lookup_shares(turned.data(), kinds, size, m.data(), d.of[p].data(), pairs, bits,
                      y[p].data(), 1 + p);
      for (i64 k = 0; k < kinds; ++k)
        for (int i = 0; i < pairs; ++i)
          ASSERT_EQ((y[0][k * pairs + i] + y[1][k * pairs + i]) & low_mask(bits),
                    tables[k * size + ((m[i] - r[i]) & (size - 1))] & low_mask(bits));
    }
  }
}

TEST(Ring, RefusesWhatItCannot) {
  u64 w = 0;
  EXPECT_THROW(truncation_shares(0, &w, &w, &w, &w, 1, 32, 31, &w), InvalidArgument);
  EXPECT_THROW(truncation_shares(0, &w, &w, &w, &w, 1, 32, 0, &w), InvalidArgument);
  EXPECT_THROW(lookup_shares(&w, 1, 3, &w, &w, 0, 32, &w), InvalidArgument);
  EXPECT_THROW(product_shares(2, &w, &w, &w, &w, &w, 1, 32, &w), InvalidArgument);
  EXPECT_THROW(product_shares(0, &w, &w, &w, &w, &w, 1, 65, &w), InvalidArgument);
}

}  // namespace
}  // namespace privml::threepc
