// SPDX-License-Identifier: Apache-2.0
#include "linear/wide.h"

#include <gtest/gtest.h>

#include "linear/testing/reference.h"

namespace privml::linear {
namespace {

using Words = std::vector<u64>;

struct Wide {
  Words low, high;
  explicit Wide(i64 n) : low(n), high(n) {}
  Wide(i64 n, u64 seed) : low(test_words(n, seed)), high(test_words(n, seed + 1)) {
    if (n > 2) {  // carries and borrows at the words' limits
      low[0] = high[0] = low[1] = ~u64{0};
      high[1] = 0;
      low[2] = high[2] = 0;
    }
  }
  WideView view() const { return {low.data(), high.data()}; }
  WideOutput output() { return {low.data(), high.data()}; }
};

TEST(WideNumbers, ElementwiseOperations) {
  const i64 n = 100;
  const Wide a(n, 1), b(n, 5);
  const Words factors = test_words(n, 9);
  Wide sum(n), difference(n), negative(n), product(n), multiple(n);
  add_wide(a.view(), b.view(), n, sum.output());
  subtract_wide(a.view(), b.view(), n, difference.output());
  negate_wide(a.view(), n, negative.output());
  multiply_wide(a.view(), factors.data(), n, product.output());
  multiply_wide(a.view(), ~u64{0}, n, multiple.output());
  for (i64 i = 0; i < n; ++i) {
    const u128 x = a.view()[i], y = b.view()[i];
    EXPECT_EQ(sum.view()[i], x + y);
    EXPECT_EQ(difference.view()[i], x - y);
    EXPECT_EQ(negative.view()[i], -x);
    EXPECT_EQ(product.view()[i], x * factors[i]);
    EXPECT_EQ(multiple.view()[i], (x << 64) - x);
  }
}

TEST(WideNumbers, SumsOverTheMiddleDimension) {
  const i64 outer = 3, count = 7, inner = 5;
  const Wide a(outer * count * inner, 3);
  Wide out(outer * inner);
  sum_wide(a.view(), outer, count, inner, out.output());
  for (i64 o = 0; o < outer; ++o)
    for (i64 i = 0; i < inner; ++i) {
      u128 sum = 0;
      for (i64 j = 0; j < count; ++j) sum += a.view()[(o * count + j) * inner + i];
      EXPECT_EQ(out.view()[o * inner + i], sum);
    }
}

TEST(WideNumbers, ProductsOfEverySmallShapeAndOrientation) {
  for (i64 rows : {0, 1, 3, 6})
    for (i64 inner : {0, 1, 4, 9})
      for (i64 columns : {0, 1, 3, 4, 5, 11})
        for (bool turned : {false, true}) {
          const Wide a(rows * inner, 2);
          const Words b = test_words(inner * columns, 8);
          const Strides a_at = turned ? Strides{1, rows} : Strides{inner, 1};
          const Strides b_at = turned ? Strides{1, inner} : Strides{columns, 1};
          const Strides out_at = turned ? Strides{1, rows} : Strides{columns, 1};
          Wide out(rows * columns);
          wide_product(a.view(), a_at, b.data(), b_at, rows, inner, columns, out.output(), out_at);
          for (i64 i = 0; i < rows; ++i)
            for (i64 j = 0; j < columns; ++j) {
              u128 sum = 0;
              for (i64 k = 0; k < inner; ++k)
                sum += a.view()[i * a_at.row + k * a_at.column] * b[k * b_at.row + j * b_at.column];
              ASSERT_EQ(out.view()[i * out_at.row + j * out_at.column], sum);
            }
        }
}

}  // namespace
}  // namespace privml::linear
