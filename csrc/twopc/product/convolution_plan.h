// SPDX-License-Identifier: Apache-2.0
// A convolution as a list of small matrix products whose operands are gathered by index.
#pragma once

#include <vector>

#include "twopc/product/convolution.h"
#include "twopc/product/vector_products.h"

namespace privml::twopc {

// Choice operand (row, c) stands at choice_row[row] + c * choice_stride, correlation (c, column) at
// correlation_column[column] + c * correlation_stride, and their sum over c < inner is added to
// out_row[row] + out_column[column].
struct IndexedProduct {
  i64 inner = 0;
  i64 choice_stride = 0, correlation_stride = 0;
  std::vector<i64> choice_row, correlation_column, out_row, out_column;

  i64 rows() const { return std::ssize(choice_row); }
  i64 columns() const { return std::ssize(correlation_column); }
};

// Per group and kernel tap: kernel words choose, the pixels that the tap meets are correlations.
std::vector<IndexedProduct> plan_by_kernel(const linear::ConvolutionShape& shape);

// Per group and class of pixels that meet the same taps: pixels choose, those taps are
// correlations.
std::vector<IndexedProduct> plan_by_pixels(const linear::ConvolutionShape& shape);

// The sizes of the products of either plan, in its order, without their places.
std::vector<ProductBlock> blocks_by_kernel(const linear::ConvolutionShape& shape);
std::vector<ProductBlock> blocks_by_pixels(const linear::ConvolutionShape& shape);

// What cross_term_bits() needs to compare both plans: choice operands of each and products in
// either.
struct PlanSize {
  i64 kernel_choices = 0;
  i64 pixel_choices = 0;
  i64 elements = 0;
};
PlanSize plan_size(const linear::ConvolutionShape& shape);

}  // namespace privml::twopc
