// SPDX-License-Identifier: Apache-2.0
// Two-dimensional convolution (cross-correlation, as in neural networks) of shared and owned
// tensors.
//
// Functionality  out[n,o,y,x] = sum over c, ky, kx of in[n, c, y * stride_y + ky * dilation_y -
//                pad_top, x * stride_x + kx * dilation_x - pad_left] * kernel[o,c,ky,kx] mod 2^ell
//                as additive shares, with zero padding. Operand formats as in matmul.h.
// Method         choices are kernel bits (each carries the pixels that it meets, over batch and
//                positions) or pixel bits (each carries the kernel weights that it meets). No
//                pixel's bits are chosen twice, and products with padding are left out on both
//                sides. `automatic` takes the side with fewer bytes.
// Leakage        none beyond shapes, widths and placement. Assumption: correlated OT,
//                correlation-robust hash.
// Cost           as vector_products.h, of the blocks in convolution_plan.h.
#pragma once

#include "linear/convolution.h"
#include "twopc/product/cross_terms.h"
#include "twopc/product/operand.h"

namespace privml::twopc {

enum class ConvolutionChoice { automatic, pixels, kernel };

// in: [batch, in_channels, height, width], kernel: [out_channels, in_channels / groups,
// kernel_height, kernel_width], out: [batch, out_channels, out_height, out_width], all row-major.
// Throws InvalidArgument on shapes, widths or lengths that do not fit.
void convolution(ot::Party& party, Operand in_format, std::span<const u64> in,
                 Operand kernel_format, std::span<const u64> kernel,
                 const linear::ConvolutionShape& shape, int ell, std::span<u64> out,
                 ConvolutionChoice choice = ConvolutionChoice::automatic);
void cost_convolution(ot::CostMeter& meter, Operand in_format, Operand kernel_format,
                      const linear::ConvolutionShape& shape, int ell,
                      ConvolutionChoice choice = ConvolutionChoice::automatic);

}  // namespace privml::twopc
