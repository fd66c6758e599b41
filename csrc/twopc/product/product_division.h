// SPDX-License-Identifier: Apache-2.0
// How a matrix product or a convolution is divided over lanes.
//
// Functionality  the product is cut along one axis, which public numbers choose: the one whose
//                parts cost least together. Along the axis that is summed over, the parts' results
//                are added; otherwise they stand side by side.
// Cost           the sum of the parts'; along the summed axis it is that of the whole.
#pragma once

#include <span>
#include <vector>

#include "twopc/product/convolution.h"
#include "twopc/product/matmul.h"
#include "twopc/session/lanes.h"

namespace privml::twopc {

// Less than this is not worth a thread and messages of its own: bytes, a correlation counted as
// kCorrelationBits.
inline constexpr i64 kLaneBytes = i64{1} << 16;

// Where the parts lie in an array [outer, size, each]: part i is [outer, ranges[i], each]. With
// size 0 every part takes the whole array (an operand), or adds to it (the result).
struct Slice {
  i64 outer = 0, size = 0, each = 0;
};

template <class Shape>
struct ProductDivision {
  Slice left, right, out;
  std::vector<LaneRange> ranges;
  std::vector<Shape> shapes;  // of the parts
};

ProductDivision<MatrixShape> divide_matmul(Operand left, Operand right, const MatrixShape& shape,
                                           int ell, i64 lanes, i64 least = kLaneBytes);
ProductDivision<linear::ConvolutionShape> divide_convolution(Operand in, Operand kernel,
                                                             const linear::ConvolutionShape& shape,
                                                             int ell, i64 lanes,
                                                             i64 least = kLaneBytes);

// A part of an operand; nothing of an operand that this party does not hold.
std::vector<u64> cut(std::span<const u64> values, const Slice& slice, LaneRange range);
// Puts a part's result where it belongs, or adds it.
void put(std::span<const u64> part, const Slice& slice, LaneRange range, std::span<u64> out);

}  // namespace privml::twopc
