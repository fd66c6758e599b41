// SPDX-License-Identifier: Apache-2.0
#include "threepc/comparison.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "base/error.h"
#include "threepc/kernels.h"

namespace privml::threepc {
namespace {

using Planes = std::vector<u8>;

std::mt19937_64 generator(1);

Planes random_planes(i64 bytes) {
  Planes out(bytes);
  for (u8& byte : out) byte = static_cast<u8>(generator());
  return out;
}

Planes operator^(Planes a, const Planes& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] ^= b[i];
  return a;
}

Planes part(const Planes& all, i64 first, i64 count) {
  return {all.begin() + first, all.begin() + first + count};
}

Planes planes_of(const std::vector<u64>& words, i64 rows, int bits) {
  const i64 count = std::ssize(words) / rows;
  Planes out(bits * rows * ceil_div(count, 8));
  bit_planes(words.data(), rows, count, bits, out.data());
  return out;
}

// [r > m] of the lower bits for several m of each r, as all three parties compute it.
std::vector<bool> greater(const ComparisonPlan& plan, const std::vector<u64>& r,
                          const std::vector<u64>& m, i64 several) {
  const int bits = std::accumulate(plan.blocks.begin(), plan.blocks.end(), 0);
  const i64 size = ceil_div(std::ssize(r), 8), each = several * size;
  i64 opened = 0, products = 0;
  for (const auto& nodes : plan.levels) {
    opened += 2 * std::accumulate(nodes.begin(), nodes.end(), i64{0}) - 1;
    products += product_planes(nodes);
  }
  const Planes masks = random_planes(opened * each), mask_of_0 = random_planes(opened * each);
  Planes dealt(table_planes(plan.blocks) * size + products * each);
  deal_comparison(plan, planes_of(r, 1, bits + 1).data(), masks.data(), several, size,
                  dealt.data());
  const Planes dealt_to_0 = random_planes(std::ssize(dealt));
  const Planes dealt_to[2] = {dealt_to_0, dealt ^ dealt_to_0};
  const Planes mask_of[2] = {mask_of_0, masks ^ mask_of_0};
  const Planes known = planes_of(m, several, bits);
  i64 blocks = std::ssize(plan.blocks);
  Planes level[2] = {Planes((2 * blocks - 1) * each), Planes((2 * blocks - 1) * each)};
  for (const int party : {0, 1})
    compare_blocks(party, plan.blocks, known.data(), dealt_to[party].data(), several, size,
                   level[party].data());
  i64 mask = 0, product = table_planes(plan.blocks) * size;
  for (const auto& nodes : plan.levels) {
    const i64 here = (2 * blocks - 1) * each, next = std::ssize(nodes);
    const Planes shown = level[0] ^ level[1] ^ part(masks, mask, here);
    for (const int party : {0, 1}) {
      Planes joined((2 * next - 1) * each);
      join_blocks(party, nodes, shown.data(), mask_of[party].data() + mask,
                  dealt_to[party].data() + product, each, joined.data());
      level[party] = joined;
    }
    mask += here;
    product += product_planes(nodes) * each;
    blocks = next;
  }
  const Planes result = level[0] ^ level[1];
  std::vector<bool> out;
  for (i64 row = 0; row < several; ++row)
    for (i64 i = 0; i < std::ssize(r); ++i)
      out.push_back(result[row * size + i / 8] >> (i % 8) & 1);
  return out;
}

void expect_right(const ComparisonPlan& plan, const std::vector<u64>& r, const std::vector<u64>& m,
                  i64 several) {
  const u64 mask = low_mask(std::accumulate(plan.blocks.begin(), plan.blocks.end(), 0));
  const std::vector<bool> found = greater(plan, r, m, several);
  for (std::size_t i = 0; i < m.size(); ++i)
    ASSERT_EQ(found[i], (r[i % r.size()] & mask) > (m[i] & mask)) << r[i % r.size()] << " " << m[i];
}

TEST(DealtComparison, AllNumbersOfFewBits) {
  for (const ComparisonPlan& plan :
       {ComparisonPlan{{1}, {}}, ComparisonPlan{{5}, {}}, ComparisonPlan{{2, 2}, {{2}}},
        ComparisonPlan{{1, 1, 1, 1, 1}, {{2, 2, 1}, {3}}}, ComparisonPlan{{3, 2}, {{2}}},
        ComparisonPlan{{1, 1, 1, 1, 1, 1}, {{6}}}, ComparisonPlan{{1, 1, 1, 1}, {{2, 2}, {2}}}}) {
    const int bits = std::accumulate(plan.blocks.begin(), plan.blocks.end(), 0);
    std::vector<u64> r, m;
    for (u64 i = 0; i < u64{1} << 2 * bits; ++i) {
      r.push_back(i & low_mask(bits));
      m.push_back(i >> bits);
    }
    expect_right(plan, r, m, 1);
  }
}

TEST(DealtComparison, WideNumbersAndSeveralOfOneMask) {
  const ComparisonPlan wide{{4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 3}, {{4, 4, 4, 4}, {4}}};
  for (const ComparisonPlan& plan : {wide, ComparisonPlan{{6, 5, 5, 5, 5, 5}, {{6}}}})
    for (const i64 count : {1, 7, 8, 513, 600}) {
      std::vector<u64> r(count), m(3 * count);
      for (u64& word : r) word = generator();
      for (i64 i = 0; i < 3 * count; ++i) {
        const u64 differs = generator() % 64;  // in few bits, or in one
        m[i] = i % 2 == 0 ? generator() : r[i % count] ^ (u64{1} << differs);
      }
      expect_right(plan, r, m, 3);
    }
}

TEST(DealtComparison, RefusesWhatIsTooLarge) {
  u8 byte = 0;
  EXPECT_THROW(table_planes(std::vector<int>{7}), InvalidArgument);
  EXPECT_THROW(product_planes(std::vector<int>{}), InvalidArgument);
  EXPECT_THROW(join_blocks(2, std::vector<int>{2}, &byte, &byte, &byte, 0, &byte), InvalidArgument);
}

}  // namespace
}  // namespace privml::threepc
