// SPDX-License-Identifier: Apache-2.0
// Operands as Python names them: a format is (owner, bits, signed), owner -1 means shared, and a
// party that does not know an owned operand passes None.
#pragma once

#include <tuple>

#include "bindings/elementwise.h"
#include "linear/convolution.h"
#include "twopc/product/operand.h"

namespace privml::bindings {

using Format = std::tuple<int, int, bool>;
using Words = std::optional<py::array>;

inline twopc::Operand operand(const Format& format) {
  const auto [owner, bits, is_signed] = format;
  return {owner, bits, is_signed};
}

// Lengths are checked against the public shape here, since a meter has no values to check.
inline void check_length(std::span<const u64> words, const twopc::Operand& format, int rank,
                         i64 expected, const char* name) {
  const i64 needed = twopc::holds(rank, format) ? expected : 0;
  if (size(words) != needed)
    throw InvalidArgument(std::string(name) + ": " + std::to_string(words.size()) +
                          " values, the shape needs " + std::to_string(needed));
}

// padding is (top, bottom, left, right).
inline linear::ConvolutionShape convolution_shape(const std::array<i64, 4>& in,
                                                  const std::array<i64, 4>& kernel,
                                                  const std::array<i64, 2>& stride,
                                                  const std::array<i64, 4>& padding,
                                                  const std::array<i64, 2>& dilation, i64 groups) {
  expect(
      groups >= 1 && in[1] % groups == 0 && in[1] / groups == kernel[1] && kernel[0] % groups == 0,
      "convolution: channels of x and w do not fit the groups");
  expect(stride[0] >= 1 && stride[1] >= 1 && dilation[0] >= 1 && dilation[1] >= 1,
         "convolution: stride and dilation must be at least 1");
  linear::ConvolutionShape shape;
  shape.batch = in[0], shape.in_channels = in[1], shape.height = in[2], shape.width = in[3];
  shape.out_channels = kernel[0], shape.kernel_height = kernel[2], shape.kernel_width = kernel[3];
  shape.groups = groups;
  shape.stride_y = stride[0], shape.stride_x = stride[1];
  shape.pad_top = padding[0], shape.pad_bottom = padding[1];
  shape.pad_left = padding[2], shape.pad_right = padding[3];
  shape.dilation_y = dilation[0], shape.dilation_x = dilation[1];
  expect(shape.out_height() >= 1 && shape.out_width() >= 1,
         "convolution: the kernel is larger than the padded input");
  return shape;
}

}  // namespace privml::bindings
