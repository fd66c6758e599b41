// SPDX-License-Identifier: Apache-2.0
// Two-dimensional convolution (cross-correlation, as in neural networks) mod 2^bits.
//
// Functionality  out[n,o,y,x] = (out[n,o,y,x] + sum over c, ky, kx of
//                in[n, c, y * stride_y + ky * dilation_y - pad_top,
//                      x * stride_x + kx * dilation_x - pad_left] * kernel[o,c,ky,kx]) mod 2^bits,
//                with zero padding.
// Method         one matrix product per group; its right factor is indexed in the padded image, so
//                that patches are written out a panel at a time only.
// Leakage        none: time and memory access depend on the shape alone.
#pragma once

#include "linear/kernels.h"

namespace privml::linear {

struct ConvolutionShape {
  i64 batch = 1, in_channels = 1, height = 1, width = 1;
  i64 out_channels = 1, kernel_height = 1, kernel_width = 1;
  i64 groups = 1;
  i64 stride_y = 1, stride_x = 1;
  i64 pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  i64 dilation_y = 1, dilation_x = 1;

  i64 out_height() const {
    return (height + pad_top + pad_bottom - dilation_y * (kernel_height - 1) - 1) / stride_y + 1;
  }
  i64 out_width() const {
    return (width + pad_left + pad_right - dilation_x * (kernel_width - 1) - 1) / stride_x + 1;
  }
  i64 in_count() const { return batch * in_channels * height * width; }
  i64 kernel_count() const {
    return out_channels * in_channels / groups * kernel_height * kernel_width;
  }
  i64 out_count() const { return batch * out_channels * out_height() * out_width(); }
};

// Throws InvalidArgument unless all sizes but the batch's are positive, groups divide both channel
// counts and the kernel fits into the padded input.
void expect_valid(const ConvolutionShape& shape);

// in: [batch, in_channels, height, width], kernel: [out_channels, in_channels / groups,
// kernel_height, kernel_width], out: [batch, out_channels, out_height, out_width], all row-major.
// Throws InvalidArgument on shapes, bits or lengths that do not fit.
void add_convolution(std::span<const u64> in, std::span<const u64> kernel,
                     const ConvolutionShape& shape, int bits, std::span<u64> out, int threads = 1,
                     Backend backend = best_backend());

}  // namespace privml::linear
