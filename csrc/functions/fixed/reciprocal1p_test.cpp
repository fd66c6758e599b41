// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/reciprocal1p.h"

#include <gtest/gtest.h>

#include <cmath>

#include "functions/fixed/testing/functions.h"

namespace privml::fixed {
namespace {

using namespace fixed::testing;

constexpr TestedFunction kReciprocal1p{reciprocal1p, clear_reciprocal1p};
// Of a softmax over 32 places.
constexpr FormatPair kRow{{19, 13}, {12, 10}};

Numbers all_of(FixedFormat in) { return all_from(0, (i64{1} << (in.bits - 1)) - 1); }

double largest_error(const Numbers& x, FormatPair formats) {
  const Numbers y = clear(kReciprocal1p, x, formats);
  double most = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double number = std::ldexp(static_cast<double>(x[i]), -formats.in.scale);
    const double exact = std::ldexp(1 / (1 + number), formats.out.scale);
    most = std::max(most, std::abs(static_cast<double>(y[i]) - exact));
  }
  return most;
}

TEST(Reciprocal1p, WithinAUnitOfEveryServedFormat) {
  int served = 0;
  for (int bits = 2; bits <= 16; ++bits)
    for (int scale = 0; scale <= bits - 2; ++scale)
      for (int out_scale : {0, 4, 8, 10, 11, 14, 16}) {
        const FormatPair formats{{bits, scale}, {out_scale + 2, out_scale}};
        if (!has_reciprocal1p(formats.in, formats.out)) continue;
        ++served;
        EXPECT_LT(largest_error(all_of(formats.in), formats), 1.0)
            << bits << " " << scale << " " << out_scale;
      }
  EXPECT_GT(served, 300);
  EXPECT_LT(largest_error(all_of(kRow.in), kRow), 0.9);
}

TEST(Reciprocal1p, SharesOfEveryNarrowFormat) {
  for (int bits : {2, 3, 9, 10, 11})
    for (int scale = 0; scale <= bits - 2; scale += 2)
      for (FixedFormat out : {FixedFormat{2, 0}, FixedFormat{8, 6}, FixedFormat{13, 5}})
        if (has_reciprocal1p({bits, scale}, out))
          expect_equals_twin(kReciprocal1p, all_of({bits, scale}), {{bits, scale}, out});
}

TEST(Reciprocal1p, SharesOfWideFormats) {
  for (const FormatPair& formats :
       {kRow, FormatPair{{16, 12}, {16, 12}}, FormatPair{{32, 28}, {16, 8}}})
    for (i64 chunk_factor : {1, 8})
      for (i64 n : {0, 1, 2, 300}) {
        const i64 most = (i64{1} << (formats.in.bits - 1)) - 1;
        expect_equals_twin(kReciprocal1p, random_numbers(n, 0, most), formats, {}, chunk_factor);
      }
  expect_equals_twin(kReciprocal1p, random_numbers(300, 0, (1 << 18) - 1), kRow, {false, 4});
}

TEST(Reciprocal1p, ExactAtZeroAndFarAway) {
  EXPECT_EQ(clear(kReciprocal1p, {0, 8192, 3 * 8192}, kRow), (Numbers{1024, 512, 256}));
}

TEST(Reciprocal1p, RefusesLongRangesAndOtherFormats) {
  EXPECT_FALSE(has_reciprocal1p({24, 12}, {16, 12}));
  Numbers x{1}, y(1), two(2);
  EXPECT_THROW(clear_reciprocal1p(x, {24, 12}, {16, 12}, y), InvalidArgument);
  EXPECT_THROW(clear_reciprocal1p(x, {33, 12}, {16, 12}, y), InvalidArgument);
  EXPECT_THROW(clear_reciprocal1p(x, {19, 13}, {12, 10}, two), InvalidArgument);
}

TEST(Reciprocal1p, WireTrace) {
  EXPECT_EQ(wire_trace(kReciprocal1p, random_numbers(100, 0, (1 << 18) - 1), kRow),
            "48ac5853639b2bcd");
}

}  // namespace
}  // namespace privml::fixed
