// SPDX-License-Identifier: Apache-2.0
#include "crypto/gf128.h"

#include <gtest/gtest.h>

#include <vector>

#include "crypto/prg.h"

namespace privml::crypto {
namespace {

u64 bit(Block b, int i) { return (i < 64 ? b.lo >> i : b.hi >> (i - 64)) & 1; }

Block times_x(Block b) {
  return Block{b.lo << 1, b.hi << 1 | b.lo >> 63} ^ select(b.hi >> 63, {0x87, 0});
}

// The definition: one bit of b at a time.
Block slow_product(Block a, Block b) {
  Block sum{};
  for (int i = 0; i < 128; ++i, a = times_x(a)) sum ^= select(bit(b, i), a);
  return sum;
}

std::vector<Block> random_blocks(i64 count, u64 seed) {
  std::vector<Block> blocks(count);
  Prg({seed, 0}).fill_blocks(blocks.data(), count);
  return blocks;
}

std::vector<Block> edge_values() {
  std::vector<Block> values{{0, 0},   {1, 0}, {2, 0}, {0, u64{1} << 63}, {~u64{0}, ~u64{0}},
                            {0x87, 0}};
  for (int i = 0; i < 128; i += 7)
    values.push_back(i < 64 ? Block{u64{1} << i, 0} : Block{0, u64{1} << (i - 64)});
  for (Block b : random_blocks(20, 1)) values.push_back(b);
  return values;
}

TEST(Gf128, MultipliesAsDefined) {
  for (Block a : edge_values()) {
    for (Block b : edge_values()) ASSERT_EQ(gf128_multiply(a, b), slow_product(a, b));
  }
}

// X generates a subgroup whose order divides 2^128 - 1: squaring 128 times is the identity.
TEST(Gf128, SquaringIsTheFrobeniusMap) {
  for (Block a : random_blocks(8, 2)) {
    Block power = a;
    for (int i = 0; i < 128; ++i) power = gf128_multiply(power, power);
    EXPECT_EQ(power, a);
  }
}

using Products = void (*)(const Block*, i64, i64, const Block*, i64, WideProduct*);

void check_products(Products products) {
  for (i64 count : {0, 1, 3, 4, 5, 8, 17, 64}) {
    const i64 rows = 5, stride = count + 3;
    const auto matrix = random_blocks(rows * stride, 3), coefficients = random_blocks(count, 4);
    std::vector<WideProduct> sums(rows);
    std::vector<Block> expected(rows);
    for (i64 r = 0; r < rows; ++r) {
      sums[r] = {matrix[r], matrix[r + 1]};  // they are added to
      expected[r] = gf128_reduce(sums[r]);
      for (i64 j = 0; j < count; ++j)
        expected[r] ^= slow_product(matrix[r * stride + j], coefficients[j]);
    }
    products(matrix.data(), rows, stride, coefficients.data(), count, sums.data());
    for (i64 r = 0; r < rows; ++r)
      EXPECT_EQ(gf128_reduce(sums[r]), expected[r]) << count << " " << r;
  }
}

TEST(Gf128, InnerProducts) { check_products(gf128_inner_products); }
TEST(Gf128, InnerProductsPortablyToo) { check_products(gf128::products_portable); }
#if defined(__aarch64__)
TEST(Gf128, InnerProductsWithPmullToo) {
  if (!gf128::pmull_supported()) GTEST_SKIP() << "this processor has no PMULL";
  check_products(gf128::products_pmull);
}
#elif defined(__x86_64__)
TEST(Gf128, InnerProductsWithPclmulToo) {
  if (!gf128::pclmul_supported()) GTEST_SKIP() << "this processor has no PCLMULQDQ";
  check_products(gf128::products_pclmul);
}

// What a wide kernel leaves, the narrow one does.
template <auto wide>
void products_with(const Block* rows, i64 row_count, i64 stride, const Block* coefficients,
                   i64 count, WideProduct* sums) {
  const i64 done = wide(rows, row_count, stride, coefficients, count, sums);
  gf128::products_portable(rows + done, row_count, stride, coefficients + done, count - done, sums);
}

TEST(Gf128, InnerProductsWithVpclmulToo) {
  if (!gf128::vpclmul256_supported()) GTEST_SKIP() << "this processor has no VPCLMULQDQ";
  check_products(products_with<gf128::products_vpclmul256>);
}
TEST(Gf128, InnerProductsWithVpclmulOf512BitsToo) {
  if (!gf128::vpclmul512_supported()) GTEST_SKIP() << "this processor has no AVX-512";
  check_products(products_with<gf128::products_vpclmul512>);
}
#endif

}  // namespace
}  // namespace privml::crypto
