// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/product_division.h"

#include <gtest/gtest.h>

#include "twopc/testing/parties.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

constexpr int kEll = 37;
constexpr i64 kLeast = 1;  // so that small products are divided too

// Runs every part of a division one after another in one session and puts the results together.
template <class Shape, class Protocol>
Words in_parts(ot::Party& party, const ProductDivision<Shape>& division, const Words& left,
               const Words& right, i64 count, i64 (*out_count)(const Shape&), Protocol&& protocol) {
  Words out(count);
  for (size_t i = 0; i < division.shapes.size(); ++i) {
    const LaneRange range = division.ranges[i];
    Words part(out_count(division.shapes[i]));
    protocol(party, cut(left, division.left, range), cut(right, division.right, range),
             division.shapes[i], part);
    put(part, division.out, range, out);
  }
  return out;
}

Words opened(const Both<Words>& shares) {
  Words sum(shares[0].size());
  for (size_t i = 0; i < sum.size(); ++i) {
    sum[i] = (shares[0][i] + shares[1][i]) & ((u64{1} << kEll) - 1);
  }
  return sum;
}

const std::vector<std::pair<Operand, Operand>> kFormats{
    {{kShared, kEll, true}, {kShared, kEll, true}},
    {{kShared, kEll, true}, {0, 12, true}},
    {{1, 20, true}, {kShared, kEll, true}}};

Both<Words> shared_or_owned(const Words& values, Operand format) {
  if (format.owner == kShared) return share(values, kEll);
  Both<Words> held;
  held[format.owner] = values;
  return held;
}

Words clear_matmul(const Words& x, const Words& y, const MatrixShape& s) {
  Words out(s.rows * s.columns);
  for (i64 r = 0; r < s.rows; ++r) {
    for (i64 i = 0; i < s.inner; ++i) {
      for (i64 c = 0; c < s.columns; ++c) {
        out[r * s.columns + c] += x[r * s.inner + i] * y[i * s.columns + c];
      }
    }
  }
  for (u64& word : out) word &= (u64{1} << kEll) - 1;
  return out;
}

// Values that owned and shared operands read alike.
Words small_words(i64 count) { return random_words(count, 10); }

TEST(ProductDivision, MatrixPartsMakeTheWhole) {
  for (const MatrixShape& shape : {MatrixShape{7, 5, 6}, {1, 9, 4}, {6, 1, 3}, {2, 40, 1}}) {
    const Words x = small_words(shape.rows * shape.inner);
    const Words y = small_words(shape.inner * shape.columns);
    for (const auto& [fx, fy] : kFormats) {
      const auto division = divide_matmul(fx, fy, shape, kEll, 3, kLeast);
      ASSERT_GE(division.shapes.size(), 2u);
      const Both<Words> a = shared_or_owned(x, fx), b = shared_or_owned(y, fy);
      Both<Words> out;
      run_parties({}, [&, fx = fx, fy = fy](ot::Party& party) {
        out[party.rank] = in_parts<MatrixShape>(
            party, division, a[party.rank], b[party.rank], shape.rows * shape.columns,
            [](const MatrixShape& s) { return s.rows * s.columns; },
            [&](ot::Party& p, const Words& left, const Words& right, const MatrixShape& s,
                Words& z) { matmul(p, fx, left, fy, right, s, kEll, z); });
      });
      EXPECT_EQ(opened(out), clear_matmul(x, y, shape));
    }
  }
}

std::vector<linear::ConvolutionShape> convolution_shapes() {
  linear::ConvolutionShape plain;
  plain.batch = 1, plain.in_channels = 4, plain.height = plain.width = 6;
  plain.out_channels = 3, plain.kernel_height = plain.kernel_width = 3;
  linear::ConvolutionShape batch = plain;
  batch.batch = 5, batch.stride_y = batch.stride_x = 2, batch.pad_top = batch.pad_left = 1;
  linear::ConvolutionShape groups = plain;
  groups.groups = 4, groups.out_channels = 8, groups.batch = 2;
  return {plain, batch, groups};
}

TEST(ProductDivision, ConvolutionPartsMakeTheWhole) {
  for (const linear::ConvolutionShape& shape : convolution_shapes()) {
    const Words x = small_words(shape.in_count()), w = small_words(shape.kernel_count());
    for (const auto& [fx, fw] : kFormats) {
      const Both<Words> a = shared_or_owned(x, fx), b = shared_or_owned(w, fw);
      std::vector<Words> results;
      for (const i64 lanes : {1, 2, 3}) {
        const auto division = divide_convolution(fx, fw, shape, kEll, lanes, kLeast);
        ASSERT_EQ(division.shapes.size() > 1, lanes > 1);
        Both<Words> out;
        run_parties({}, [&, fx = fx, fw = fw](ot::Party& party) {
          out[party.rank] = in_parts<linear::ConvolutionShape>(
              party, division, a[party.rank], b[party.rank], shape.out_count(),
              [](const linear::ConvolutionShape& s) { return s.out_count(); },
              [&](ot::Party& p, const Words& left, const Words& right,
                  const linear::ConvolutionShape& s,
                  Words& z) { convolution(p, fx, left, fw, right, s, kEll, z); });
        });
        results.push_back(opened(out));
      }
      EXPECT_EQ(results[1], results[0]);
      EXPECT_EQ(results[2], results[0]);
    }
  }
}

TEST(ProductDivision, TheCheapestAxisCostsLittleMoreThanTheWhole) {
  const auto bits = [](Operand fx, Operand fy, const std::vector<MatrixShape>& shapes) {
    ot::CostMeter meter{ot::RcotCost{"ideal", 0, 1, 1}};
    for (const MatrixShape& shape : shapes) cost_matmul(meter, fx, fy, shape, kEll);
    return (meter.bytes[0] + meter.bytes[1]) * 8 +
           (meter.cots[0] + meter.cots[1]) * kCorrelationBits;
  };
  for (const MatrixShape& shape : {MatrixShape{64, 32, 4}, {4, 32, 64}, {1, 500, 1}}) {
    for (const auto& [fx, fy] : kFormats) {
      const auto division = divide_matmul(fx, fy, shape, kEll, 2);
      const i64 whole = bits(fx, fy, {shape});
      EXPECT_EQ(division.shapes.size(), whole / 8 >= 2 * kLaneBytes ? 2u : 1u);
      EXPECT_LE(bits(fx, fy, division.shapes), whole + whole / 20 + 64);
    }
  }
}

}  // namespace
}  // namespace privml::twopc
