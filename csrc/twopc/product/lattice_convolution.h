// SPDX-License-Identifier: Apache-2.0
// Convolutions with kernels that one party knows, by packed lattice-based encryption.
//
// Functionality  out as convolution.h, mod 2^ell as additive shares, exact; the kernel is owned by
// a
//                party, the image is shared or owned by the other one, the client.
//   lattice_convolution   with nothing prepared but keys
//   prepare_convolution   shares of the convolution of random images r that the client knows,
//   before
//                         images are there
//   prepared_convolution  uses up images of what was prepared: the client sends image - r, so that
//                         the owner of the kernel convolves it and the client nothing
// Method         convolution_layout.h: pixels are uploaded once, not for each tap.
// Leakage        none beyond shapes and formats. Assumption: packed_product.h. The mask of an image
//                serves once and is gone before the message is written.
// Cost           lattice_convolution and prepare_convolution: packed_product.h of the layout's
//                product. prepared_convolution: 16 bytes and the image's numbers of ell bits in
//                one message.
// Source         convolution_layout.h; Mishra et al., Delphi (USENIX Security 2020), for
//                correlations of fixed weights.
#pragma once

#include "twopc/product/convolution_layout.h"
#include "twopc/product/prepared_product.h"

namespace privml::twopc {

// A convolution of shape.batch images and, at its owner, the kernel and its fingerprint().
struct KernelUse {
  ConvolutionTask task;
  std::span<const u64> words = {};
  lattice::Digest digest = {};
};

// in: [batch, in_channels, height, width]; out: [batch, out_channels, out_height, out_width].
// Throws InvalidArgument if convolution_layout() has none, and on formats and lengths that do
// not fit, before anything is sent; ProtocolError if the peer's convolution or messages are
// others.
void lattice_convolution(ot::Party& party, PackingKeys& keys, Operand in_format,
                         std::span<const u64> in, const KernelUse& use, std::span<u64> out);
// `products`: that the keys have served before.
void cost_lattice_convolution(ot::CostMeter& meter, const lattice::SwitchingSet& set, i64 products,
                              const ConvolutionTask& task);

// shape.batch images of convolutions to come, as rows of a prepared product; booked under
// Phase::preprocess.
PreparedProduct prepare_convolution(ot::Party& party, PackingKeys& keys, const KernelUse& use);
void cost_prepare_convolution(ot::CostMeter& meter, const lattice::SwitchingSet& set, i64 products,
                              const ConvolutionTask& task);

// Uses up all of `prepared`, a party's half for shape.batch images, before it sends anything. The
// kernel is that of the preparation (InvalidArgument if it differs). ProtocolError if the
// peer's half is of other images, before anything is computed.
void prepared_convolution(ot::Party& party, PreparedProduct prepared, Operand in_format,
                          std::span<const u64> in, const KernelUse& use, std::span<u64> out);
void cost_prepared_convolution(ot::CostMeter& meter, const ConvolutionTask& task);

// What a prepared convolution has as its rows, inner dimension and columns.
MatrixShape images_of(const linear::ConvolutionShape& shape);
// Of a kernel, its format and how it meets an image; zeros of no words.
lattice::Digest fingerprint(const ConvolutionTask& task, std::span<const u64> kernel);

}  // namespace privml::twopc
