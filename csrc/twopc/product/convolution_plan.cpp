// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/convolution_plan.h"

#include <algorithm>
#include <map>

namespace privml::twopc {
namespace {

constexpr i64 kMaxColumns = i64{1} << 14;
constexpr i64 kMaxOperand = i64{1} << 22;

// One axis of a convolution.
struct Axis {
  i64 in, out, taps, stride, pad, dilation;
};

Axis vertical(const linear::ConvolutionShape& s) {
  return {s.height, s.out_height(), s.kernel_height, s.stride_y, s.pad_top, s.dilation_y};
}

Axis horizontal(const linear::ConvolutionShape& s) {
  return {s.width, s.out_width(), s.kernel_width, s.stride_x, s.pad_left, s.dilation_x};
}

i64 input_place(const Axis& axis, i64 out, i64 tap) {
  return out * axis.stride + tap * axis.dilation - axis.pad;
}

// Outputs at which the tap meets an input and not padding.
std::vector<i64> outputs_of_tap(const Axis& axis, i64 tap) {
  std::vector<i64> outputs;
  for (i64 out = 0; out < axis.out; ++out) {
    const i64 in = input_place(axis, out, tap);
    if (in >= 0 && in < axis.in) outputs.push_back(out);
  }
  return outputs;
}

// Inputs by the taps that they meet; inputs that no tap meets are left out.
std::map<std::vector<i64>, std::vector<i64>> inputs_by_taps(const Axis& axis) {
  std::vector<std::vector<i64>> taps(axis.in);
  for (i64 tap = 0; tap < axis.taps; ++tap)
    for (i64 out : outputs_of_tap(axis, tap)) taps[input_place(axis, out, tap)].push_back(tap);
  std::map<std::vector<i64>, std::vector<i64>> classes;
  for (i64 in = 0; in < axis.in; ++in)
    if (!taps[in].empty()) classes[taps[in]].push_back(in);
  return classes;
}

i64 output_place(const Axis& axis, i64 in, i64 tap) {
  return (in + axis.pad - tap * axis.dilation) / axis.stride;
}

// Long messages are cut, so that one tile and one operand stay small.
i64 most_columns(i64 inner) { return std::clamp<i64>(kMaxOperand / inner, 1, kMaxColumns); }

void add_cut(std::vector<ProductBlock>& blocks, const ProductBlock& block) {
  const i64 limit = most_columns(block.inner);
  for (i64 first = 0; first < block.length; first += limit)
    blocks.push_back({block.rows, block.inner, std::min(limit, block.length - first)});
}

void add_cut(std::vector<IndexedProduct>& plan, IndexedProduct product) {
  const i64 columns = product.columns();
  const i64 limit = most_columns(product.inner);
  for (i64 first = 0; first < columns; first += limit) {
    const i64 last = std::min(first + limit, columns);
    IndexedProduct part = product;
    part.correlation_column.assign(product.correlation_column.begin() + first,
                                   product.correlation_column.begin() + last);
    part.out_column.assign(product.out_column.begin() + first, product.out_column.begin() + last);
    plan.push_back(std::move(part));
  }
}

}  // namespace

std::vector<IndexedProduct> plan_by_kernel(const linear::ConvolutionShape& s) {
  const Axis y = vertical(s), x = horizontal(s);
  const i64 inner = s.in_channels / s.groups, outer = s.out_channels / s.groups;
  const i64 taps = y.taps * x.taps, plane = s.height * s.width, out_plane = y.out * x.out;
  std::vector<IndexedProduct> plan;
  for (i64 g = 0; g < s.groups; ++g) {
    for (i64 tap = 0; tap < taps; ++tap) {
      const i64 ky = tap / x.taps, kx = tap % x.taps;
      const std::vector<i64> rows = outputs_of_tap(y, ky), columns = outputs_of_tap(x, kx);
      if (rows.empty() || columns.empty()) continue;
      IndexedProduct p;
      p.inner = inner;
      p.choice_stride = taps;
      p.correlation_stride = plane;
      for (i64 o = g * outer; o < (g + 1) * outer; ++o) {
        p.choice_row.push_back(o * inner * taps + tap);
        p.out_row.push_back(o * out_plane);
      }
      for (i64 n = 0; n < s.batch; ++n) {
        for (i64 oy : rows) {
          for (i64 ox : columns) {
            p.correlation_column.push_back((n * s.in_channels + g * inner) * plane +
                                           input_place(y, oy, ky) * s.width +
                                           input_place(x, ox, kx));
            p.out_column.push_back(n * s.out_channels * out_plane + oy * x.out + ox);
          }
        }
      }
      add_cut(plan, std::move(p));
    }
  }
  return plan;
}

std::vector<IndexedProduct> plan_by_pixels(const linear::ConvolutionShape& s) {
  const Axis y = vertical(s), x = horizontal(s);
  const i64 inner = s.in_channels / s.groups, outer = s.out_channels / s.groups;
  const i64 taps = y.taps * x.taps, plane = s.height * s.width, out_plane = y.out * x.out;
  const auto y_classes = inputs_by_taps(y), x_classes = inputs_by_taps(x);
  std::vector<IndexedProduct> plan;
  for (i64 g = 0; g < s.groups; ++g) {
    for (const auto& [y_taps, y_inputs] : y_classes) {
      for (const auto& [x_taps, x_inputs] : x_classes) {
        IndexedProduct p;
        p.inner = inner;
        p.choice_stride = plane;
        p.correlation_stride = taps;
        // A row's output place for the first tap; all other taps lie at fixed distances from it.
        const i64 ky0 = y_taps.front(), kx0 = x_taps.front();
        for (i64 n = 0; n < s.batch; ++n) {
          for (i64 iy : y_inputs) {
            for (i64 ix : x_inputs) {
              p.choice_row.push_back((n * s.in_channels + g * inner) * plane + iy * s.width + ix);
              p.out_row.push_back(n * s.out_channels * out_plane +
                                  output_place(y, iy, ky0) * x.out + output_place(x, ix, kx0));
            }
          }
        }
        const i64 iy0 = y_inputs.front(), ix0 = x_inputs.front();
        for (i64 o = g * outer; o < (g + 1) * outer; ++o) {
          for (i64 ky : y_taps) {
            for (i64 kx : x_taps) {
              const i64 down = output_place(y, iy0, ky) - output_place(y, iy0, ky0);
              const i64 right = output_place(x, ix0, kx) - output_place(x, ix0, kx0);
              p.correlation_column.push_back(o * inner * taps + ky * x.taps + kx);
              p.out_column.push_back(o * out_plane + down * x.out + right);
            }
          }
        }
        add_cut(plan, std::move(p));
      }
    }
  }
  return plan;
}

std::vector<ProductBlock> blocks_by_kernel(const linear::ConvolutionShape& s) {
  const Axis y = vertical(s), x = horizontal(s);
  std::vector<ProductBlock> blocks;
  for (i64 g = 0; g < s.groups; ++g) {
    for (i64 ky = 0; ky < y.taps; ++ky) {
      for (i64 kx = 0; kx < x.taps; ++kx) {
        const i64 met = std::ssize(outputs_of_tap(y, ky)) * std::ssize(outputs_of_tap(x, kx));
        if (met == 0) continue;
        add_cut(blocks, {s.out_channels / s.groups, s.in_channels / s.groups, s.batch * met});
      }
    }
  }
  return blocks;
}

std::vector<ProductBlock> blocks_by_pixels(const linear::ConvolutionShape& s) {
  const auto y_classes = inputs_by_taps(vertical(s)), x_classes = inputs_by_taps(horizontal(s));
  const i64 outer = s.out_channels / s.groups;
  std::vector<ProductBlock> blocks;
  for (i64 g = 0; g < s.groups; ++g) {
    for (const auto& [y_taps, y_inputs] : y_classes) {
      for (const auto& [x_taps, x_inputs] : x_classes) {
        add_cut(blocks,
                {s.batch * std::ssize(y_inputs) * std::ssize(x_inputs), s.in_channels / s.groups,
                 outer * std::ssize(y_taps) * std::ssize(x_taps)});
      }
    }
  }
  return blocks;
}

PlanSize plan_size(const linear::ConvolutionShape& s) {
  const Axis axes[] = {vertical(s), horizontal(s)};
  i64 meetings = 1;  // of a tap and an input, over both axes
  for (const Axis& axis : axes) {
    i64 sum = 0;
    for (i64 tap = 0; tap < axis.taps; ++tap) sum += std::ssize(outputs_of_tap(axis, tap));
    meetings *= sum;
  }
  const i64 inner = s.in_channels / s.groups;
  const i64 positions = s.batch * s.out_height() * s.out_width();
  return {s.kernel_count() * ceil_div(positions, kMaxColumns), s.in_count(),
          s.batch * s.out_channels * inner * meetings};
}

}  // namespace privml::twopc
