// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/convolution_layout.h"

#include <algorithm>

#include "base/error.h"
#include "lattice/scalar_product.h"

namespace privml::twopc {
namespace {

using lattice::PackedChoice;
using lattice::PackedShape;
using lattice::SwitchingSet;

i64 floor_div(i64 a, i64 b) { return a >= 0 ? a / b : -ceil_div(-a, b); }

struct Taps {
  i64 count, dilation, pad;
};

PhasedAxis axis_of(i64 in, i64 out, i64 stride, const Taps& taps) {
  PhasedAxis axis{in, out, stride, {}, {}, {}};
  for (i64 tap = 0; tap < taps.count; ++tap) {
    const i64 place = tap * taps.dilation - taps.pad, offset = floor_div(place, stride);
    const i64 phase = place - offset * stride;
    const auto found = std::ranges::find(axis.phases, phase);
    axis.phase_of.push_back(found - axis.phases.begin());
    axis.offset_of.push_back(offset);
    if (found == axis.phases.end()) axis.phases.push_back(phase);
  }
  axis.least = std::ranges::min(axis.offset_of);
  axis.most = std::ranges::max(axis.offset_of);
  return axis;
}

// With so many tiles of the axis. Whole images share their margins.
PhasedAxis tiled(PhasedAxis axis, i64 tiles) {
  axis.tile = ceil_div(axis.out, tiles);
  axis.tiles = ceil_div(axis.out, axis.tile);
  axis.step = axis.reach();
  if (axis.tiles > 1) return axis;
  const i64 before = std::min(std::max(-axis.least, i64{0}), axis.reach());
  const i64 last = (axis.in - 1) / axis.stride;  // coordinate, of phase 0, beyond which all is zero
  const i64 after = std::clamp(axis.out - 1 + axis.most - last, i64{0}, axis.reach() - before);
  axis.step = axis.reach() - before - after + std::max(before, after);
  return axis;
}

// Of so many tiles below each other.
i64 positions(const PhasedAxis& y, const PhasedAxis& x, i64 tiles) {
  return ((tiles - 1) * y.step + y.reach() - 1) * x.step + x.reach();
}

i64 place(const PhasedAxis& y, const PhasedAxis& x, i64 tile, i64 row, i64 column) {
  return (tile * y.step + row) * x.step + column;
}

// Of one group.
std::vector<lattice::Term> terms_of(const linear::ConvolutionShape& shape, const PhasedAxis& y,
                                    const PhasedAxis& x) {
  const i64 wide = std::ssize(x.phases), phases = std::ssize(y.phases) * wide;
  std::vector<lattice::Term> terms;
  for (i64 c = 0; c < shape.in_channels / shape.groups; ++c)
    for (i64 ky = 0; ky < shape.kernel_height; ++ky)
      for (i64 kx = 0; kx < shape.kernel_width; ++kx)
        terms.push_back({c * phases + y.phase_of[ky] * wide + x.phase_of[kx],
                         (y.offset_of[ky] - y.least) * x.step + x.offset_of[kx] - x.least});
  return terms;
}

// Nanoseconds of one core for a product of words and for a digit that is switched.
constexpr double kWordProduct = 0.08, kDigit = 2e4;

double predicted(const PackedProduct& product, const lattice::SwitchingSet& set, i64 byte_price) {
  const lattice::PackedShape& shape = product.shape;
  const auto [up, down] = packed_bytes_of(product);
  const double outputs = static_cast<double>(shape.outputs);
  const double sums =
      static_cast<double>(shape.inner() * shape.count() * product.messages) +
      static_cast<double>(lattice::c1_work(product.choice, shape, product.messages));
  const double switched = static_cast<double>(
      product.messages * lattice::switched_digits(set, product.choice.levels, shape.outputs));
  return static_cast<double>((up + down) * byte_price) + outputs * sums * kWordProduct +
         switched * kDigit;
}

ConvolutionLayout laid_out(const linear::ConvolutionShape& shape, const PhasedAxis& y,
                           const PhasedAxis& x, const lattice::PackedChoice& choice, u64 largest) {
  ConvolutionLayout layout{shape, y, x, 1, {choice, {}, 1}};
  const i64 tiles = layout.tiles(), most = choice.columns.set.n / choice.gap();
  layout.at_once = 1 + (most - positions(y, x, 1)) / (y.step * x.step);
  layout.product.messages = ceil_div(tiles, layout.at_once);
  layout.at_once = ceil_div(tiles, layout.product.messages);
  lattice::PackedShape& packed = layout.product.shape;
  packed.rows = shape.in_channels * std::ssize(y.phases) * std::ssize(x.phases);
  packed.positions = positions(y, x, layout.at_once);
  packed.outputs = shape.out_channels;
  packed.groups = shape.groups;
  packed.largest = largest;
  packed.terms = terms_of(shape, y, x);
  for (i64 tile = 0; tile < layout.at_once; ++tile)
    for (i64 row = 0; row < y.tile; ++row)
      for (i64 column = 0; column < x.tile; ++column)
        packed.places.push_back(place(y, x, tile, row, column));
  return layout;
}

// The fewest tiles of x whose lines fit, and of y then; 0 if none do.
i64 least_tiles(const PhasedAxis& axis, auto&& fits) {
  if (!fits(tiled(axis, axis.out))) return 0;
  i64 tiles = 1;
  while (!fits(tiled(axis, tiles))) ++tiles;
  return tiles;
}

}  // namespace

std::optional<ConvolutionLayout> convolution_layout(const ConvolutionTask& task,
                                                    const lattice::SwitchingSet& set) {
  const auto& [shape, kernel, ell, byte_price] = task;
  constexpr i64 kMoreTiles = 4;  // than are needed, which may leave less empty
  linear::expect_valid(shape);
  const u64 largest = lattice::largest_weight(kernel.bits, kernel.is_signed);
  const i64 inner = shape.in_channels / shape.groups * shape.kernel_height * shape.kernel_width;
  if (shape.batch < 1 || inner > lattice::kMostInner || largest > lattice::kMostScalar)
    return std::nullopt;
  const PhasedAxis y = axis_of(shape.height, shape.out_height(), shape.stride_y,
                               {shape.kernel_height, shape.dilation_y, shape.pad_top});
  const PhasedAxis x = axis_of(shape.width, shape.out_width(), shape.stride_x,
                               {shape.kernel_width, shape.dilation_x, shape.pad_left});
  std::optional<ConvolutionLayout> best;
  double least = 0;
  for (int level = 0; level <= set.levels; ++level) {
    const auto choice = lattice::choose_packed({inner, largest, ell}, level, set);
    if (!choice) continue;
    const i64 room = choice->columns.set.n / choice->gap();
    const i64 across = least_tiles(
        x, [&](const PhasedAxis& lines) { return positions(tiled(y, y.out), lines, 1) <= room; });
    if (across == 0) continue;
    const PhasedAxis lines = tiled(x, across);
    const i64 down =
        least_tiles(y, [&](const PhasedAxis& rows) { return positions(rows, lines, 1) <= room; });
    for (i64 tiles = down; tiles <= std::min(down + kMoreTiles, y.out); ++tiles) {
      const ConvolutionLayout layout = laid_out(shape, tiled(y, tiles), lines, *choice, largest);
      const double time = predicted(layout.product, set, task.byte_price);
      if (best && least <= time) continue;
      best = layout;
      least = time;
    }
  }
  return best;
}

void lay_out(const ConvolutionLayout& layout, std::span<const u64> in, std::span<u64> messages) {
  const auto& [shape, y, x, at_once, product] = layout;
  const i64 phases = std::ssize(y.phases) * std::ssize(x.phases);
  const i64 rows = product.shape.rows, length = product.shape.positions;
  expect(std::ssize(in) == shape.in_count() &&
             std::ssize(messages) == product.messages * rows * length,
         "convolution: the image does not match the layout");
  std::ranges::fill(messages, 0);
  for (i64 tile = 0; tile < layout.tiles(); ++tile) {
    const i64 image = tile / (y.tiles * x.tiles), message = tile / at_once;
    const i64 top = tile / x.tiles % y.tiles * y.tile + y.least;
    const i64 left = tile % x.tiles * x.tile + x.least;
    for (i64 row = 0; row < rows; ++row) {
      const i64 channel = row / phases, phase = row % phases;
      const i64 phase_y = y.phases[phase / std::ssize(x.phases)];
      const i64 phase_x = x.phases[phase % std::ssize(x.phases)];
      const u64* from =
          in.data() + (image * shape.in_channels + channel) * shape.height * shape.width;
      u64* to = messages.data() + (message * rows + row) * length;
      for (i64 i = 0; i < y.reach(); ++i) {
        const i64 in_y = (top + i) * y.stride + phase_y;
        if (in_y < 0 || in_y >= y.in) continue;
        for (i64 j = 0; j < x.reach(); ++j) {
          const i64 in_x = (left + j) * x.stride + phase_x;
          if (in_x < 0 || in_x >= x.in) continue;
          to[place(y, x, tile % at_once, i, j)] = from[in_y * shape.width + in_x];
        }
      }
    }
  }
}

void collect(const ConvolutionLayout& layout, std::span<const u64> results, std::span<u64> out) {
  const auto& [shape, y, x, at_once, product] = layout;
  const i64 outputs = shape.out_channels, places = product.shape.count();
  expect(std::ssize(out) == shape.out_count() &&
             std::ssize(results) == product.messages * outputs * places,
         "convolution: the results do not match the layout");
  for (i64 tile = 0; tile < layout.tiles(); ++tile) {
    const i64 image = tile / (y.tiles * x.tiles), message = tile / at_once;
    const i64 top = tile / x.tiles % y.tiles * y.tile, left = tile % x.tiles * x.tile;
    const i64 height = std::min(y.tile, y.out - top), width = std::min(x.tile, x.out - left);
    for (i64 o = 0; o < outputs; ++o) {
      const u64* from =
          results.data() + (message * outputs + o) * places + tile % at_once * y.tile * x.tile;
      u64* to = out.data() + ((image * outputs + o) * y.out + top) * x.out + left;
      for (i64 row = 0; row < height; ++row)
        std::copy_n(from + row * x.tile, width, to + row * x.out);
    }
  }
}

}  // namespace privml::twopc
