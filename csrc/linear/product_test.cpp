// SPDX-License-Identifier: Apache-2.0
#include "linear/product.h"

#include "base/error.h"
#include "linear/testing/reference.h"

namespace privml::linear {
namespace {

using Words = std::vector<u64>;

struct Size {
  i64 rows, inner, columns;
};

// How a matrix lies in memory: its strides, in words.
struct Layout {
  i64 row, column;
};

Words sums(const Words& start, const Words& a, Layout la, const Words& b, Layout lb, const Size& s,
           int bits) {
  Words out = start;
  for (i64 i = 0; i < s.rows; ++i)
    for (i64 j = 0; j < s.columns; ++j) {
      u64& word = out[i * s.columns + j];
      for (i64 k = 0; k < s.inner; ++k)
        word += a[i * la.row + k * la.column] * b[k * lb.row + j * lb.column];
      word &= low_mask(bits);
    }
  return out;
}

void expect_product(const Size& s, bool turn_a, bool turn_b, int bits, int threads,
                    Backend backend) {
  const Layout la = turn_a ? Layout{1, s.rows} : Layout{s.inner, 1};
  const Layout lb = turn_b ? Layout{1, s.inner} : Layout{s.columns, 1};
  const Words a = test_words(s.rows * s.inner, 1), b = test_words(s.inner * s.columns, 2);
  const Words start = test_words(s.rows * s.columns, 3);
  const auto a_row = strided(s.rows, la.row), a_column = strided(s.inner, la.column);
  const auto b_row = strided(s.inner, lb.row), b_column = strided(s.columns, lb.column);
  const auto out_row = strided(s.rows, s.columns), out_column = strided(s.columns, 1);
  Words out = start;
  add_product({a.data(), a_row, a_column}, {b.data(), b_row, b_column}, bits,
              {out.data(), out_row, out_column}, threads, backend);
  const Words expected = s.inner == 0 ? start : sums(start, a, la, b, lb, s, bits);
  ASSERT_EQ(out, expected) << s.rows << " x " << s.inner << " x " << s.columns << ", bits " << bits
                           << ", backend " << static_cast<int>(backend) << ", turned " << turn_a
                           << turn_b;
}

TEST(RingProduct, EverySmallShape) {
  for (Backend backend : backends())
    for (i64 rows = 0; rows <= 9; ++rows)
      for (i64 columns = 0; columns <= 9; ++columns)
        for (i64 inner : {0, 1, 2, 5})
          for (int bits : {32, 64})
            expect_product({rows, inner, columns}, false, false, bits, 1, backend);
}

TEST(RingProduct, EveryEdgeOfTilesAndPanels) {
  for (Backend backend : backends())
    for (const Size& s : {Size{1, 300, 49},
                          {50, 3, 1},
                          {8, 257, 48},
                          {17, 9, 95},
                          {33, 64, 25},
                          {200, 7, 23},
                          {193, 5, 97},
                          {2, 9, 4100},
                          {1, 30, 67},
                          {2, 769, 33},
                          {7, 513, 7},
                          {9, 1025, 31}})
      for (bool turn_a : {false, true})
        for (bool turn_b : {false, true})
          for (int bits : {32, 64}) expect_product(s, turn_a, turn_b, bits, 1, backend);
}

TEST(RingProduct, EveryWidth) {
  for (Backend backend : backends())
    for (int bits = 1; bits <= 64; ++bits)
      expect_product({5, 11, 26}, false, true, bits, 1, backend);
}

TEST(RingProduct, ThreadsShareOutColumnsOrRows) {
  for (const Size& s : {Size{40, 200, 1700}, {1700, 200, 40}, {300, 300, 300}})
    for (int threads : {2, 3, 7})
      for (int bits : {32, 64}) expect_product(s, false, false, bits, threads, best_backend());
}

TEST(RingProduct, OffsetsInAnyOrder) {
  const Words a = test_words(40, 1), b = test_words(60, 2);
  const std::vector<i64> a_row{30, 0, 7}, a_column{3, 9, 1, 0}, b_row{0, 20, 5, 33},
      b_column{8, 1, 2, 26, 4}, out_row{12, 0, 6}, out_column{4, 1, 3, 0, 2};
  for (Backend backend : backends()) {
    Words out(17, 1), expected(17, 1);
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 5; ++j)
        for (int k = 0; k < 4; ++k)
          expected[out_row[i] + out_column[j]] +=
              a[a_row[i] + a_column[k]] * b[b_row[k] + b_column[j]];
    add_product({a.data(), a_row, a_column}, {b.data(), b_row, b_column}, 64,
                {out.data(), out_row, out_column}, 1, backend);
    EXPECT_EQ(out, expected);
  }
}

TEST(RingProduct, RefusesWhatDoesNotFit) {
  Words words(4);
  const std::vector<i64> one{0}, two{0, 1};
  const IndexedMatrix a{words.data(), one, two}, b{words.data(), two, one};
  EXPECT_THROW(add_product(a, a, 64, {words.data(), one, two}), InvalidArgument);
  EXPECT_THROW(add_product(a, b, 64, {words.data(), one, two}), InvalidArgument);
  EXPECT_THROW(add_product(a, b, 65, {words.data(), one, one}), InvalidArgument);
  EXPECT_THROW(add_product(a, b, 0, {words.data(), one, one}), InvalidArgument);
  EXPECT_THROW(add_product(a, b, 64, {words.data(), one, one}, 0), InvalidArgument);
}

}  // namespace
}  // namespace privml::linear
