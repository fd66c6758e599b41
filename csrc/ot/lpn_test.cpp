// SPDX-License-Identifier: Apache-2.0
#include "ot/lpn.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>
#include <vector>

#include "base/error.h"
#include "crypto/prg.h"

namespace privml::ot {
namespace {

std::vector<crypto::Block> random_blocks(crypto::Block seed, i64 count) {
  std::vector<crypto::Block> blocks(count);
  crypto::Prg(seed).fill_blocks(blocks.data(), count);
  return blocks;
}

std::vector<crypto::Block> encoded(const LpnCode& code, u64 matrix, i64 first,
                                   const std::vector<crypto::Block>& secret, i64 count) {
  std::vector<crypto::Block> rows(count);
  code.add(matrix, first, secret.data(), rows.data(), count);
  return rows;
}

// The matrix's rows as sets of places, recovered from products with unit vectors.
TEST(LpnCode, RowsHaveTenOnesSpreadEvenly) {
  const i64 length = 100, rows = 6400;
  const LpnCode code({1, 2}, length);
  std::vector<i64> weight(rows), column(length);
  for (i64 place = 0; place < length; ++place) {
    std::vector<crypto::Block> unit(length);
    unit[place] = {1, 0};
    const auto product = encoded(code, 0, 0, unit, rows);
    for (i64 i = 0; i < rows; ++i) {
      weight[i] += static_cast<i64>(product[i].lo);
      column[place] += static_cast<i64>(product[i].lo);
    }
  }
  for (i64 w : weight) {
    EXPECT_LE(w, LpnCode::kWeight);
    EXPECT_EQ(w % 2, 0);  // equal places cancel in pairs
  }
  // A place is in a row with probability close to 0.0917; six standard deviations of 6400 draws.
  for (i64 c : column) EXPECT_NEAR(static_cast<double>(c), 6400 * 0.0917, 6 * 23.1);
}

TEST(LpnCode, IsLinearAddsUpAndDependsOnRowSeedAndMatrix) {
  const i64 length = 4096;
  const LpnCode code({3, 4}, length), other({3, 5}, length);
  const auto a = random_blocks({1, 1}, length), b = random_blocks({2, 2}, length);
  std::vector<crypto::Block> both(length);
  for (i64 i = 0; i < length; ++i) both[i] = a[i] ^ b[i];
  const auto of_a = encoded(code, 7, 128, a, 256), of_b = encoded(code, 7, 128, b, 256);
  auto sum = of_a;
  for (i64 i = 0; i < 256; ++i) sum[i] ^= of_b[i];
  EXPECT_EQ(sum, encoded(code, 7, 128, both, 256));
  auto added = of_a;
  code.add(7, 128, b.data(), added.data(), 256);
  EXPECT_EQ(added, sum);
  const auto all = encoded(code, 7, 0, a, 384);
  EXPECT_TRUE(std::equal(of_a.begin(), of_a.end(), all.begin() + 128));
  EXPECT_NE(of_a, encoded(code, 8, 128, a, 256));
  EXPECT_NE(of_a, encoded(other, 7, 128, a, 256));
}

TEST(LpnCode, ReachesEveryPlaceAndNoneBeyond) {
  // Lengths that are no power of two; blocks beyond the secret would show in the sum.
  for (i64 length : {i64{5} << 5, i64{19} << 4, i64{163840}}) {
    std::vector<crypto::Block> secret(length + 1000, crypto::Block{0, 0});
    for (i64 i = length; i < std::ssize(secret); ++i) secret[i] = {1, 0};
    const LpnCode code({9, static_cast<u64>(length)}, length);
    for (crypto::Block row : encoded(code, 0, 0, secret, 64 * 1024))
      ASSERT_EQ(row, crypto::kZeroBlock);
    secret.assign(length, crypto::Block{0, 0});
    secret.front() = {1, 0};
    secret.back() = {2, 0};
    crypto::Block seen{};
    for (crypto::Block row : encoded(code, 0, 0, secret, 64 * 1024)) seen.lo |= row.lo;
    EXPECT_EQ(seen.lo, 3u) << length;
  }
}

TEST(LpnCode, RefusesOddCounts) {
  const LpnCode code({1, 1}, 128);
  std::vector<crypto::Block> secret(128), rows(128);
  EXPECT_THROW(code.add(0, 1, secret.data(), rows.data(), 64), InvalidArgument);
  EXPECT_THROW(code.add(0, 0, secret.data(), rows.data(), 65), InvalidArgument);
  EXPECT_THROW(LpnCode({1, 1}, 0), InvalidArgument);
}

// The correlations that an iteration spends fit into what the one before leaves over.
TEST(LpnParameters, SetupFeedsTheFirstIteration) {
  const i64 spent = kLpnMain.secret + kLpnMain.choices() + 128;
  EXPECT_GE(kLpnSetup.samples(), spent);
  EXPECT_GE(kLpnMain.samples(), 10 * spent);
  EXPECT_EQ(kLpnMain.samples(), 2396160);
}

}  // namespace
}  // namespace privml::ot
