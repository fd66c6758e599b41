// SPDX-License-Identifier: Apache-2.0
// A convolution as packed products (packed_product.h): where pixels lie in polynomials.
//
// Method         a stride divides the input into phases, each of which meets its own taps at a
//                stride of one: a row of a message is one phase of one channel. In it lie tiles of
//                images (whole images, unless they are larger than a polynomial) one below the
//                other, with what taps meet around them, so that a tap is a shift. Zeros beside
//                whole images serve as right margin of one line and left margin of the next.
// Source         Huang, Lu, Hong, Ding, Cheetah (USENIX Security 2022), for convolutions in
//                coefficients and tiles.
#pragma once

#include "linear/convolution.h"
#include "twopc/product/operand.h"
#include "twopc/product/packed_product.h"

namespace privml::twopc {

// One axis of a convolution with the phases that its taps meet.
struct PhasedAxis {
  i64 in = 1, out = 1, stride = 1;
  std::vector<i64> phases;     // remainders of input coordinates by the stride, in use
  std::vector<i64> phase_of;   // of a tap, among those
  std::vector<i64> offset_of;  // of a tap, in coordinates of phases, from the output's
  i64 least = 0, most = 0;     // offset
  i64 tile = 1, tiles = 1;     // outputs of a tile, and tiles of an image
  i64 step = 1;                // from one tile, or one line, to the next
  i64 reach() const { return tile + most - least; }  // coordinates that a tile's taps meet
};

struct ConvolutionLayout {
  linear::ConvolutionShape shape;
  PhasedAxis y, x;
  i64 at_once = 1;  // tiles in one message
  PackedProduct product;

  i64 tiles() const { return shape.batch * y.tiles * x.tiles; }
};

// A convolution as both parties know it.
struct ConvolutionTask {
  linear::ConvolutionShape shape;
  Operand kernel;
  int ell = 0;
  i64 byte_price = 8;  // nanoseconds that a byte takes on the link, against which work is weighed
};

// The layout of least predicted time; none if no parameters serve or a tile does not fit a
// polynomial.
std::optional<ConvolutionLayout> convolution_layout(const ConvolutionTask& task,
                                                    const lattice::SwitchingSet& set);

// in: [batch, in_channels, height, width] to messages x rows x positions, zero where nothing lies.
void lay_out(const ConvolutionLayout& layout, std::span<const u64> in, std::span<u64> messages);
// messages x outputs x places to [batch, out_channels, out_height, out_width].
void collect(const ConvolutionLayout& layout, std::span<const u64> results, std::span<u64> out);

}  // namespace privml::twopc
