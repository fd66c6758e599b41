// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/product_division.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace privml::twopc {
namespace {

// One axis along which a product may be cut, and what remains of the shape for `count` of it.
template <class Shape>
struct Axis {
  Slice left, right, out;
  i64 size;
  Shape (*part)(Shape, i64 count);
};

template <class CostOf>
i64 bytes_of(CostOf&& cost) {
  ot::CostMeter meter{ot::RcotCost{"ideal", 0, 1, 1}};
  cost(meter);
  return meter.bytes[0] + meter.bytes[1] + (meter.cots[0] + meter.cots[1]) * kCorrelationBits / 8;
}

template <class Shape, class CostOf>
ProductDivision<Shape> cheapest(const Shape& shape, const std::vector<Axis<Shape>>& axes, i64 lanes,
                                i64 least, CostOf&& cost) {
  ProductDivision<Shape> best{{}, {}, {}, {LaneRange{}}, {shape}};
  if (lanes == 1) return best;
  const i64 whole = bytes_of([&](ot::CostMeter& meter) { cost(meter, shape); });
  const i64 wanted = std::min(lanes, whole / least);
  if (wanted < 2) return best;
  i64 best_bytes = std::numeric_limits<i64>::max();
  for (const Axis<Shape>& axis : axes) {
    if (axis.size < wanted) continue;
    ProductDivision<Shape> division{
        axis.left, axis.right, axis.out, divide_over_lanes(axis.size, wanted, 1), {}};
    i64 bytes = 0;
    for (const LaneRange& range : division.ranges) {
      division.shapes.push_back(axis.part(shape, range.count));
      bytes += bytes_of([&](ot::CostMeter& meter) { cost(meter, division.shapes.back()); });
    }
    if (bytes < best_bytes) {
      best_bytes = bytes;
      best = std::move(division);
    }
  }
  return best;
}

}  // namespace

ProductDivision<MatrixShape> divide_matmul(Operand left, Operand right, const MatrixShape& shape,
                                           int ell, i64 lanes, i64 least) {
  const auto [rows, inner, columns] = shape;
  const std::vector<Axis<MatrixShape>> axes{
      {{1, rows, inner},
       {},
       {1, rows, columns},
       rows,
       [](MatrixShape s, i64 count) { return s.rows = count, s; }},
      {{},
       {inner, columns, 1},
       {rows, columns, 1},
       columns,
       [](MatrixShape s, i64 count) { return s.columns = count, s; }},
      {{rows, inner, 1},
       {1, inner, columns},
       {},
       inner,
       [](MatrixShape s, i64 count) { return s.inner = count, s; }},
  };
  return cheapest(shape, axes, lanes, least, [&](ot::CostMeter& meter, const MatrixShape& part) {
    cost_matmul(meter, left, right, part, ell);
  });
}

ProductDivision<linear::ConvolutionShape> divide_convolution(Operand in, Operand kernel,
                                                             const linear::ConvolutionShape& shape,
                                                             int ell, i64 lanes, i64 least) {
  const i64 image = shape.height * shape.width, window = shape.kernel_height * shape.kernel_width;
  const i64 grid = shape.out_height() * shape.out_width();
  const i64 groups = shape.groups, ins = shape.in_channels, outs = shape.out_channels;
  std::vector<Axis<linear::ConvolutionShape>> axes{
      {{1, shape.batch, ins * image},
       {},
       {1, shape.batch, outs * grid},
       shape.batch,
       [](linear::ConvolutionShape s, i64 count) { return s.batch = count, s; }}};
  if (groups == 1) {
    axes.push_back(
        {{},
         {1, outs, ins * window},
         {shape.batch, outs, grid},
         outs,
         [](linear::ConvolutionShape s, i64 count) { return s.out_channels = count, s; }});
    axes.push_back(
        {{shape.batch, ins, image},
         {outs, ins, window},
         {},
         ins,
         [](linear::ConvolutionShape s, i64 count) { return s.in_channels = count, s; }});
  } else {
    axes.push_back({{shape.batch, groups, ins / groups * image},
                    {1, groups, outs / groups * (ins / groups) * window},
                    {shape.batch, groups, outs / groups * grid},
                    groups,
                    [](linear::ConvolutionShape s, i64 count) {
                      s.in_channels = s.in_channels / s.groups * count;
                      s.out_channels = s.out_channels / s.groups * count;
                      return s.groups = count, s;
                    }});
  }
  return cheapest(shape, axes, lanes, least,
                  [&](ot::CostMeter& meter, const linear::ConvolutionShape& part) {
                    cost_convolution(meter, in, kernel, part, ell);
                  });
}

std::vector<u64> cut(std::span<const u64> values, const Slice& slice, LaneRange range) {
  if (values.empty() || slice.size == 0) return {values.begin(), values.end()};
  std::vector<u64> part;
  part.reserve(static_cast<size_t>(slice.outer * range.count * slice.each));
  for (i64 o = 0; o < slice.outer; ++o) {
    const auto piece =
        values.subspan((o * slice.size + range.begin) * slice.each, range.count * slice.each);
    part.insert(part.end(), piece.begin(), piece.end());
  }
  return part;
}

void put(std::span<const u64> part, const Slice& slice, LaneRange range, std::span<u64> out) {
  if (slice.size == 0) {
    expect(part.size() == out.size(), "put: a part that is added has the whole's size");
    for (size_t i = 0; i < part.size(); ++i) out[i] += part[i];
    return;
  }
  const i64 count = range.count * slice.each;
  for (i64 o = 0; o < slice.outer; ++o) {
    std::copy_n(part.begin() + o * count, count,
                out.begin() + (o * slice.size + range.begin) * slice.each);
  }
}

}  // namespace privml::twopc
