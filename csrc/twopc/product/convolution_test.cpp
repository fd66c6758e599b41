// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/convolution.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "twopc/product/convolution_plan.h"
#include "twopc/product/dense.h"
#include "twopc/testing/parties.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

// The definition, loop by loop.
Words direct(const Words& in, const Words& kernel, const linear::ConvolutionShape& s, int ell) {
  Words out(s.out_count());
  const i64 inner = s.in_channels / s.groups, outer = s.out_channels / s.groups;
  i64 place = 0;
  for (i64 n = 0; n < s.batch; ++n)
    for (i64 o = 0; o < s.out_channels; ++o)
      for (i64 oy = 0; oy < s.out_height(); ++oy)
        for (i64 ox = 0; ox < s.out_width(); ++ox, ++place) {
          for (i64 c = 0; c < inner; ++c)
            for (i64 ky = 0; ky < s.kernel_height; ++ky)
              for (i64 kx = 0; kx < s.kernel_width; ++kx) {
                const i64 iy = oy * s.stride_y + ky * s.dilation_y - s.pad_top;
                const i64 ix = ox * s.stride_x + kx * s.dilation_x - s.pad_left;
                if (iy < 0 || iy >= s.height || ix < 0 || ix >= s.width) continue;
                out[place] +=
                    in[((n * s.in_channels + o / outer * inner + c) * s.height + iy) * s.width +
                       ix] *
                    kernel[((o * inner + c) * s.kernel_height + ky) * s.kernel_width + kx];
              }
          out[place] &= low_mask(ell);
        }
  return out;
}

Both<Words> placed(const Words& values, const Operand& format, u64 seed) {
  if (format.owner == kShared) return share(values, format.bits, seed);
  Both<Words> words;
  words[format.owner] = values;
  return words;
}

void expect_convolution(Operand fin, Operand fkernel, const linear::ConvolutionShape& shape,
                        int ell, ConvolutionChoice choice, const OtKind& ot = {}) {
  const Words in = random_words(shape.in_count(), fin.bits, 1);
  const Words kernel = random_words(shape.kernel_count(), fkernel.bits, 2);
  const Both<Words> ins = placed(in, fin, 3), kernels = placed(kernel, fkernel, 4);
  Both<Words> out{Words(shape.out_count(), 5), Words(shape.out_count(), 5)};
  const Outcome outcome = run_parties(ot, [&](ot::Party& party) {
    convolution(party, fin, ins[party.rank], fkernel, kernels[party.rank], shape, ell,
                out[party.rank], choice);
  });
  const Words expected =
      direct(ring_elements(in, {fin.bits, fin.is_signed}, ell),
             ring_elements(kernel, {fkernel.bits, fkernel.is_signed}, ell), shape, ell);
  ASSERT_EQ(reconstruct(out, ell), expected);
  expect_cost_equals(
      outcome, [&](ot::CostMeter& m) { cost_convolution(m, fin, fkernel, shape, ell, choice); });
}

std::vector<linear::ConvolutionShape> shapes() {
  std::vector<linear::ConvolutionShape> list;
  const auto add = [&](i64 batch, i64 c, i64 h, i64 w, i64 o, i64 kh, i64 kw, i64 groups, i64 sy,
                       i64 sx, i64 pt, i64 pl, i64 pb, i64 pr, i64 dy, i64 dx) {
    list.push_back({batch, c, h, w, o, kh, kw, groups, sy, sx, pt, pl, pb, pr, dy, dx});
  };
  add(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1);
  add(2, 3, 4, 5, 2, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1);
  add(1, 1, 6, 6, 2, 5, 5, 1, 1, 1, 2, 2, 2, 2, 1, 1);
  add(2, 2, 7, 6, 4, 3, 2, 2, 2, 3, 1, 0, 2, 1, 1, 1);
  add(1, 3, 8, 7, 3, 3, 3, 3, 1, 2, 2, 1, 2, 1, 2, 2);
  add(3, 4, 5, 5, 4, 2, 3, 4, 3, 1, 0, 3, 1, 0, 1, 2);
  add(1, 2, 3, 9, 1, 1, 3, 1, 4, 4, 0, 0, 0, 0, 1, 1);
  add(1, 1, 2, 2, 1, 3, 3, 1, 1, 1, 3, 3, 3, 3, 1, 1);
  return list;
}

TEST(Convolution, ShapesPlacementsAndChoices) {
  for (const linear::ConvolutionShape& shape : shapes())
    for (int ell : {9, 32, 40})
      for (int in_owner : {kShared, 1})
        for (int kernel_owner : {kShared, 0})
          for (ConvolutionChoice choice :
               {ConvolutionChoice::automatic, ConvolutionChoice::pixels, ConvolutionChoice::kernel})
            expect_convolution({in_owner, in_owner == kShared ? ell : 8, false},
                               {kernel_owner, kernel_owner == kShared ? ell : 5, true}, shape, ell,
                               choice);
}

TEST(Convolution, OneOwnerIsLocal) {
  const linear::ConvolutionShape shape{1, 2, 4, 4, 2, 3, 3};
  expect_convolution({1, 8, true}, {1, 8, true}, shape, 32, ConvolutionChoice::automatic);
  ot::CostMeter meter{ot::RcotCost{"ideal", 0, 1, 1}};
  cost_convolution(meter, {1, 8, true}, {1, 8, true}, shape, 32);
  EXPECT_EQ(meter.bytes[0] + meter.bytes[1], 0);
}

TEST(Convolution, PlansSkipPaddingAndMeetEveryProductOnce) {
  for (const linear::ConvolutionShape& s : shapes()) {
    const PlanSize size = plan_size(s);
    for (const auto& plan : {plan_by_kernel(s), plan_by_pixels(s)}) {
      i64 elements = 0;
      for (const IndexedProduct& p : plan) elements += p.rows() * p.inner * p.columns();
      EXPECT_EQ(elements, size.elements);
    }
  }
}

TEST(Convolution, ProductsAreCountedWithoutTheirPlaces) {
  const auto expect_alike = [](const std::vector<IndexedProduct>& plan,
                               const std::vector<ProductBlock>& blocks) {
    ASSERT_EQ(plan.size(), blocks.size());
    for (size_t i = 0; i < plan.size(); ++i) {
      EXPECT_EQ(plan[i].rows(), blocks[i].rows);
      EXPECT_EQ(plan[i].inner, blocks[i].inner);
      EXPECT_EQ(plan[i].columns(), blocks[i].length);
    }
  };
  std::vector<linear::ConvolutionShape> all = shapes();
  all.push_back({3, 2, 130, 130, 4, 3, 3});  // whose messages are cut
  for (const linear::ConvolutionShape& s : all) {
    expect_alike(plan_by_kernel(s), blocks_by_kernel(s));
    expect_alike(plan_by_pixels(s), blocks_by_pixels(s));
  }
}

TEST(Convolution, LongMessagesAreCut) {
  linear::ConvolutionShape shape{1, 1, 130, 130, 1, 1, 1};
  expect_convolution({kShared, 10, true}, {0, 2, true}, shape, 10, ConvolutionChoice::kernel);
}

TEST(Convolution, OverSoftSpoken) {
  linear::ConvolutionShape shape{1, 2, 8, 8, 3, 3, 3};
  shape.pad_top = shape.pad_left = shape.pad_bottom = shape.pad_right = 1;
  for (ConvolutionChoice choice : {ConvolutionChoice::pixels, ConvolutionChoice::kernel})
    expect_convolution({kShared, 32, true}, {0, 12, true}, shape, 32, choice, {false, 4});
}

TEST(Convolution, RefusesShapesThatDoNotFit) {
  Words in(16), kernel(9), out(4);
  run_parties({}, [&](ot::Party& party) {
    const auto run = [&](const linear::ConvolutionShape& shape) {
      convolution(party, {kShared, 32}, in, {kShared, 32}, kernel, shape, 32, out);
    };
    EXPECT_THROW(run({1, 1, 4, 4, 1, 3, 2}), InvalidArgument);
    EXPECT_THROW(run({1, 1, 4, 4, 1, 5, 5}), InvalidArgument);
    EXPECT_THROW(run({1, 1, 4, 4, 1, 3, 3, 2}), InvalidArgument);
    EXPECT_THROW(run({1, 1, 4, 4, 1, 3, 3, 1, 0}), InvalidArgument);
  });
}

}  // namespace
}  // namespace privml::twopc
