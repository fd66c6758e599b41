// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "linear/convolution.h"
#include "linear/testing/reference.h"

namespace privml::linear {
namespace {

using Words = std::vector<u64>;

// The definition, term by term.
Words direct(const Words& in, const Words& kernel, const ConvolutionShape& s, int bits,
             const Words& start) {
  const i64 inner = s.in_channels / s.groups, outer = s.out_channels / s.groups;
  Words out = start;
  i64 place = 0;
  for (i64 n = 0; n < s.batch; ++n)
    for (i64 o = 0; o < s.out_channels; ++o)
      for (i64 y = 0; y < s.out_height(); ++y)
        for (i64 x = 0; x < s.out_width(); ++x, ++place) {
          for (i64 c = 0; c < inner; ++c)
            for (i64 ky = 0; ky < s.kernel_height; ++ky)
              for (i64 kx = 0; kx < s.kernel_width; ++kx) {
                const i64 iy = y * s.stride_y + ky * s.dilation_y - s.pad_top;
                const i64 ix = x * s.stride_x + kx * s.dilation_x - s.pad_left;
                if (iy < 0 || iy >= s.height || ix < 0 || ix >= s.width) continue;
                const i64 channel = n * s.in_channels + o / outer * inner + c;
                out[place] +=
                    in[(channel * s.height + iy) * s.width + ix] *
                    kernel[((o * inner + c) * s.kernel_height + ky) * s.kernel_width + kx];
              }
          out[place] &= low_mask(bits);
        }
  return out;
}

void expect_convolution(const ConvolutionShape& s, int bits, int threads = 1) {
  const Words in = test_words(s.in_count(), 1), kernel = test_words(s.kernel_count(), 2);
  const Words start = test_words(s.out_count(), 3);
  for (Backend backend : backends()) {
    Words out = start;
    add_convolution(in, kernel, s, bits, out, threads, backend);
    ASSERT_EQ(out, direct(in, kernel, s, bits, start)) << "backend " << static_cast<int>(backend);
  }
}

TEST(RingConvolution, EverySmallShape) {
  for (i64 size : {1, 2, 5})
    for (i64 kernel : {1, 2, 3})
      for (i64 stride : {1, 2, 3})
        for (i64 dilation : {1, 2})
          for (i64 pad : {0, 1, 2})
            for (i64 groups : {1, 2}) {
              const ConvolutionShape s{2,      2 * groups, size,   size + 1, 3 * groups, kernel,
                                       kernel, groups,     stride, 1,        pad,        0,
                                       0,      pad,        1,      dilation};
              if (size + pad < kernel || size + 1 + pad <= dilation * (kernel - 1)) continue;
              expect_convolution(s, 64);
              expect_convolution(s, 32);
            }
}

TEST(RingConvolution, LayersOfNetworks) {
  for (int bits : {20, 32, 64}) {
    expect_convolution({1, 1, 28, 28, 6, 5, 5, 1, 1, 1, 2, 2, 2, 2}, bits, 2);
    expect_convolution({2, 6, 14, 14, 16, 5, 5}, bits);
    expect_convolution({1, 9, 15, 16, 70, 3, 3, 1, 2, 2, 1, 1, 1, 1}, bits, 3);
    expect_convolution({3, 64, 1, 1, 40, 1, 1}, bits);
    expect_convolution({2, 12, 9, 9, 12, 3, 3, 12, 1, 1, 1, 1, 1, 1}, bits, 2);
  }
}

TEST(RingConvolution, RefusesWhatDoesNotFit) {
  Words words(100);
  const auto run = [&](const ConvolutionShape& s) {
    add_convolution(std::span(words).first(s.in_count()), std::span(words).first(s.kernel_count()),
                    s, 64, words);
  };
  EXPECT_THROW(run({1, 3, 4, 4, 2, 1, 1, 2}), InvalidArgument);
  EXPECT_THROW(run({1, 1, 2, 2, 1, 3, 3}), InvalidArgument);
  EXPECT_THROW(run({1, 1, 4, 4, 1, 3, 3}), InvalidArgument);  // out has another length
}

}  // namespace
}  // namespace privml::linear
