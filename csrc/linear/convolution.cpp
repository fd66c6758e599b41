// SPDX-License-Identifier: Apache-2.0
#include "linear/convolution.h"

#include <algorithm>

#include "base/error.h"
#include "linear/product.h"

namespace privml::linear {

void expect_valid(const ConvolutionShape& s) {
  expect(s.batch >= 0 && s.in_channels >= 1 && s.height >= 1 && s.width >= 1 &&
             s.out_channels >= 1 && s.kernel_height >= 1 && s.kernel_width >= 1 && s.groups >= 1,
         "convolution: sizes must be positive");
  expect(s.in_channels % s.groups == 0 && s.out_channels % s.groups == 0,
         "convolution: groups must divide both channel counts");
  expect(s.stride_y >= 1 && s.stride_x >= 1 && s.dilation_y >= 1 && s.dilation_x >= 1 &&
             s.pad_top >= 0 && s.pad_left >= 0 && s.pad_bottom >= 0 && s.pad_right >= 0,
         "convolution: strides and dilations must be positive, padding not negative");
  expect(s.height + s.pad_top + s.pad_bottom > s.dilation_y * (s.kernel_height - 1) &&
             s.width + s.pad_left + s.pad_right > s.dilation_x * (s.kernel_width - 1),
         "convolution: the kernel is larger than the padded input");
}

namespace {

// The input with its padding written out; `storage` holds it if there is any.
std::span<const u64> padded(std::span<const u64> in, const ConvolutionShape& s,
                            std::vector<u64>& storage) {
  if (s.pad_top + s.pad_bottom + s.pad_left + s.pad_right == 0) return in;
  const i64 height = s.height + s.pad_top + s.pad_bottom;
  const i64 width = s.width + s.pad_left + s.pad_right;
  storage.assign(s.batch * s.in_channels * height * width, 0);
  const u64* from = in.data();
  for (i64 plane = 0; plane < s.batch * s.in_channels; ++plane) {
    u64* to = storage.data() + (plane * height + s.pad_top) * width + s.pad_left;
    for (i64 y = 0; y < s.height; ++y, from += s.width, to += width) std::copy_n(from, s.width, to);
  }
  return storage;
}

struct Offsets {
  std::vector<i64> tap;     // (channel, ky, kx) in the padded input
  std::vector<i64> pixel;   // (n, y, x) of the output in the padded input
  std::vector<i64> output;  // (n, y, x) in the output
};

Offsets offsets_of(const ConvolutionShape& s) {
  const i64 width = s.width + s.pad_left + s.pad_right;
  const i64 plane = (s.height + s.pad_top + s.pad_bottom) * width;
  const i64 out_plane = s.out_height() * s.out_width();
  Offsets o;
  for (i64 c = 0; c < s.in_channels / s.groups; ++c)
    for (i64 ky = 0; ky < s.kernel_height; ++ky)
      for (i64 kx = 0; kx < s.kernel_width; ++kx)
        o.tap.push_back(c * plane + ky * s.dilation_y * width + kx * s.dilation_x);
  for (i64 n = 0; n < s.batch; ++n) {
    for (i64 y = 0; y < s.out_height(); ++y) {
      for (i64 x = 0; x < s.out_width(); ++x) {
        o.pixel.push_back(n * s.in_channels * plane + y * s.stride_y * width + x * s.stride_x);
        o.output.push_back(n * s.out_channels * out_plane + y * s.out_width() + x);
      }
    }
  }
  return o;
}

}  // namespace

void add_convolution(std::span<const u64> in, std::span<const u64> kernel,
                     const ConvolutionShape& s, int bits, std::span<u64> out, int threads,
                     Backend backend) {
  expect_valid(s);
  expect(std::ssize(in) == s.in_count() && std::ssize(kernel) == s.kernel_count() &&
             std::ssize(out) == s.out_count(),
         "convolution: lengths do not match the shape");
  std::vector<u64> storage;
  const std::span<const u64> image = padded(in, s, storage);
  const Offsets offsets = offsets_of(s);
  const i64 inner = std::ssize(offsets.tap), outer = s.out_channels / s.groups;
  const i64 channels = s.in_channels / s.groups;
  const i64 plane = (s.height + s.pad_top + s.pad_bottom) * (s.width + s.pad_left + s.pad_right);
  const i64 out_plane = s.out_height() * s.out_width();
  const std::vector<i64> kernel_row = strided(outer, inner), kernel_column = strided(inner, 1);
  const std::vector<i64> out_row = strided(outer, out_plane);
  for (i64 g = 0; g < s.groups; ++g)
    add_product({kernel.data() + g * outer * inner, kernel_row, kernel_column},
                {image.data() + g * channels * plane, offsets.tap, offsets.pixel}, bits,
                {out.data() + g * outer * out_plane, out_row, offsets.output}, threads, backend);
}

}  // namespace privml::linear
