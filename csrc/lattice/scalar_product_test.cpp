// SPDX-License-Identifier: Apache-2.0
#include "lattice/scalar_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/error.h"

namespace privml::lattice {
namespace {

struct Case {
  i64 rows, inner, columns;
};

enum class Fill { random, largest, alternating };

void expect_exact(const Case& size, u64 largest, int low_bits, Fill fill) {
  const auto [rows, inner, columns] = size;
  std::mt19937_64 random(1);
  std::vector<u64> weights(rows * inner);
  Words in(inner * columns);
  for (i64 i = 0; i < rows * inner; ++i) {
    weights[i] = random() % (2 * largest + 1) - largest;
    if (fill != Fill::random)
      weights[i] = fill == Fill::largest || i % 2 ? u64{0} - largest : largest;
  }
  for (i64 i = 0; i < inner * columns; ++i) {
    u64 high = random(), low = random();
    if (fill == Fill::largest) high = low = i % 3 ? ~u64{0} : u64{0};
    if (fill == Fill::alternating) {
      high = i % 2 ? u64{1} << 63 : (u64{1} << 63) - 1;
      low = i % 2 ? 0 : ~u64{0};
    }
    in.high[i] = high;
    in.low[i] = static_cast<u16>(low & low_mask(low_bits));
  }
  Words expected(rows * columns);
  for (i64 i = 0; i < rows; ++i)
    for (i64 j = 0; j < columns; ++j) {
      u128 sum = 0;
      for (i64 k = 0; k < inner; ++k)
        sum += static_cast<u128>(static_cast<__int128>(static_cast<i64>(weights[i * inner + k]))) *
               joined(in.high[k * columns + j], in.low[k * columns + j], low_bits);
      expected.high[i * columns + j] = high_of(sum, low_bits);
      expected.low[i * columns + j] = low_of(sum, low_bits);
    }
  for (const Backend backend : {Backend::portable, Backend::avx2, Backend::avx512}) {
    if (!backend_supported(backend)) continue;
    Words out(rows * columns);
    multiply_scalars(weights, rows, inner, largest, in.view(), columns, low_bits, out.output(),
                     backend);
    ASSERT_TRUE(std::ranges::equal(out.high, expected.high) &&
                std::ranges::equal(out.low, expected.low))
        << static_cast<int>(backend) << " " << rows << " " << inner << " " << columns << " "
        << largest << " " << low_bits << " " << static_cast<int>(fill);
  }
}

TEST(ScalarProduct, KeptWeightsMultiplyPartsOfAMatrix) {
  constexpr i64 kRows = 13, kInner = 150, kColumns = 70, kFirst = 37;
  constexpr int kLow = 8;
  constexpr u64 kLargest = 2048;
  std::mt19937_64 random(1);
  std::vector<u64> weights(kRows * kInner);
  for (u64& weight : weights) weight = random() % (2 * kLargest + 1) - kLargest;
  Words in(kInner * kColumns), expected(kRows * kColumns);
  for (u64& high : in.high) high = random();
  for (u16& low : in.low) low = static_cast<u16>(random() & low_mask(kLow));
  multiply_scalars(weights, kRows, kInner, kLargest, in.view(), kColumns, kLow, expected.output());
  for (const Backend backend : {Backend::portable, Backend::avx2, Backend::avx512}) {
    if (!backend_supported(backend)) continue;
    const ScalarWeights kept(weights, kRows, kInner, kLargest, kLow, backend);
    Words out(kRows * kColumns);
    for (const auto& [first, count] : {std::pair{i64{0}, kFirst}, {kFirst, kColumns - kFirst}}) {
      Words part(kInner * count);
      for (i64 k = 0; k < kInner; ++k) {
        std::copy_n(in.high.data() + k * kColumns + first, count, part.high.data() + k * count);
        std::copy_n(in.low.data() + k * kColumns + first, count, part.low.data() + k * count);
      }
      kept.multiply(part.view(), count, out.output().part(first, (kRows - 1) * kColumns + count),
                    kColumns);
    }
    EXPECT_TRUE(std::ranges::equal(out.high, expected.high));
    EXPECT_TRUE(std::ranges::equal(out.low, expected.low));
  }
}

TEST(ScalarProduct, KeptWeightsRefuseOtherShapes) {
  const std::vector<u64> weights(6, 1);
  const ScalarWeights kept(weights, 2, 3, 1, 8);
  Words in(3 * 4), out(4 + 5);
  std::ranges::fill(in.high, u64{1});
  std::ranges::fill(in.low, u16{1});
  kept.multiply(in.view(), 4, out.output(), 5);
  EXPECT_THROW(kept.multiply(in.view(), 4, out.output(), 4), InvalidArgument);
  EXPECT_THROW(kept.multiply(in.view(), 4, out.output().part(0, 5), 1), InvalidArgument);
  EXPECT_THROW(kept.multiply(in.view().part(0, 9), 4, out.output(), 5), InvalidArgument);
}

TEST(ScalarProduct, ExactForEveryShape) {
  for (i64 size = 1; size <= 130; size += size < 20 ? 1 : 11)
    for (const Case& shape : {Case{size, 3, 5}, {2, size, 3}, {3, 2, size}})
      expect_exact(shape, 2048, 8, Fill::random);
}

TEST(ScalarProduct, ExactAtEveryWidthAndExtreme) {
  for (const int low_bits : {0, 8, 12, 16})
    for (const u64 largest :
         {u64{1}, u64{2}, u64{127}, u64{128}, u64{2048}, u64{32768}, u64{65535}, kMostScalar})
      for (const Fill fill : {Fill::random, Fill::largest, Fill::alternating})
        expect_exact({3, 300, 20}, largest, low_bits, fill);
}

TEST(ScalarProduct, ExactAtTheLongestSums) {
  expect_exact({2, 1 << 16, 2}, kMostScalar, 16, Fill::largest);
  expect_exact({2, 1 << 16, 2}, 32768, 8, Fill::alternating);
}

TEST(ScalarProduct, RefusesWhatIsTooLarge) {
  Words in(1), out(1);
  const std::vector<u64> weights(1);
  EXPECT_THROW(multiply_scalars(weights, 1, 1, kMostScalar + 1, in.view(), 1, 8, out.output()),
               InvalidArgument);
  EXPECT_THROW(multiply_scalars(weights, 1, 1, 1, in.view(), 2, 8, out.output()), InvalidArgument);
  EXPECT_THROW(multiply_scalars(weights, 1, 1, 1, in.view(), 1, 17, out.output()), InvalidArgument);
}

}  // namespace
}  // namespace privml::lattice
