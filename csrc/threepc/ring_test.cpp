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

// Values of `bits` bits: all pairs if that is few, otherwise random ones.
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

TEST(Ring, SelectionsAndBits) {
  for (int bits : {1, 4, 32, 64}) {
    for (u64 m_b : {0, 1}) {
      for (u64 r_b : {0, 1}) {
        std::mt19937_64 random(bits);
        Words m, r;
        draw_pairs(bits, random, m, r);
        const Bits bit(m.size(), static_cast<u8>(m_b));
        const Shared a(r, random), rb(Words(m.size(), r_b), random),
            product(map(r, r, [&](u64 v, u64) { return r_b * v; }), random);
        Words s[2] = {Words(m.size()), Words(m.size())}, c[2] = {Words(m.size()), Words(m.size())};
        for (int p : {0, 1}) {
          selection_shares(p, bit.data(), m.data(), a.of[p].data(), rb.of[p].data(),
                           product.of[p].data(), std::ssize(m), bits, s[p].data(), 2);
          bit_shares(p, bit.data(), rb.of[p].data(), std::ssize(m), bits, c[p].data());
        }
        for (size_t i = 0; i < m.size(); ++i) {
          ASSERT_EQ((s[0][i] + s[1][i]) & low_mask(bits),
                    ((m_b ^ r_b) * (m[i] - r[i])) & low_mask(bits));
          ASSERT_EQ((c[0][i] + c[1][i]) & low_mask(bits), m_b ^ r_b);
        }
      }
    }
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
    const int pairs = size <= 8 ? size * size : 4 * size;  // all of them if that is few
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
  const u8 bit = 0;
  EXPECT_THROW(lookup_shares(&w, 1, 3, &w, &w, 0, 32, &w), InvalidArgument);
  EXPECT_THROW(bit_shares(2, &bit, &w, 1, 32, &w), InvalidArgument);
  EXPECT_THROW(bit_shares(0, &bit, &w, 1, 65, &w), InvalidArgument);
  EXPECT_THROW(selection_shares(0, &bit, &w, &w, &w, &w, 1, 0, &w), InvalidArgument);
}

}  // namespace
}  // namespace privml::threepc
