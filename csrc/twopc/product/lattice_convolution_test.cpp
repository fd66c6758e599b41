// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/lattice_convolution.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "twopc/product/dense.h"
#include "twopc/testing/parties.h"
#include "twopc/width/truncation.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;
using lattice::kSwitchingSets;
using lattice::SwitchingSet;

struct Case {
  Operand in, kernel;
  linear::ConvolutionShape shape;
  int ell;
  i64 byte_price = 8;
};

Both<Words> placed(const Words& values, const Operand& format, u64 seed) {
  if (format.owner == kShared) return share(values, format.bits, seed);
  Both<Words> words;
  words[format.owner] = values;
  return words;
}

Words expected_of(const Case& c, const Words& in, const Words& kernel) {
  Words out(c.shape.out_count());
  linear::add_convolution(ring_elements(in, {c.in.bits, c.in.is_signed}, c.ell),
                          ring_elements(kernel, {c.kernel.bits, c.kernel.is_signed}, c.ell),
                          c.shape, c.ell, out);
  return out;
}

ConvolutionTask task_of(const Case& c) { return {c.shape, c.kernel, c.ell, c.byte_price}; }

KernelUse use_of(const Case& c, std::span<const u64> kernel) {
  return {task_of(c), kernel, fingerprint(task_of(c), kernel)};
}

enum class Way { direct, prepared };

// All in one session with one set of keys. `extreme`: weights of the largest absolute values.
void expect_convolutions(int owner, const lattice::SwitchingSet& set,
                         const std::vector<Case>& cases, Way way, bool extreme = false,
                         const OtKind& ot = {}) {
  Both<std::vector<Words>> out;
  std::vector<Words> expected;
  std::vector<Both<Words>> ins, kernels;
  for (const Case& c : cases) {
    const Words in = random_words(c.shape.in_count(), c.in.bits, ins.size());
    Words kernel = random_words(c.shape.kernel_count(), c.kernel.bits, 50 + ins.size());
    if (extreme)
      for (u64& w : kernel) w = u64{1} << (c.kernel.bits - 1);
    expected.push_back(expected_of(c, in, kernel));
    ins.push_back(placed(in, c.in, 3));
    kernels.push_back(placed(kernel, c.kernel, 4));
  }
  const Outcome outcome = run_parties(ot, [&](ot::Party& party) {
    const int r = party.rank;
    PackingKeys keys{owner, set, 1 + r};
    for (size_t i = 0; i < cases.size(); ++i) {
      const KernelUse use = use_of(cases[i], kernels[i][r]);
      out[r].emplace_back(cases[i].shape.out_count());
      if (way == Way::direct) {
        lattice_convolution(party, keys, cases[i].in, ins[i][r], use, out[r].back());
      } else {
        prepared_convolution(party, prepare_convolution(party, keys, use), cases[i].in, ins[i][r],
                             use, out[r].back());
      }
    }
  });
  for (size_t i = 0; i < cases.size(); ++i)
    EXPECT_EQ(reconstruct({out[0][i], out[1][i]}, cases[i].ell), expected[i]) << i;
  expect_cost_equals(outcome, [&](ot::CostMeter& meter) {
    for (size_t i = 0; i < cases.size(); ++i) {
      const ConvolutionTask task = task_of(cases[i]);
      const i64 products = static_cast<i64>(i);
      if (way == Way::direct) {
        cost_lattice_convolution(meter, set, products, task);
      } else {
        cost_prepare_convolution(meter, set, products, task);
        cost_prepared_convolution(meter, task);
      }
    }
  });
}

linear::ConvolutionShape shape_of(std::array<i64, 4> in, i64 out, std::array<i64, 2> kernel,
                                  i64 groups, std::array<i64, 2> stride, std::array<i64, 4> pad,
                                  std::array<i64, 2> dilation) {
  return {in[0],     in[1],     in[2],  in[3],  out,    kernel[0], kernel[1],   groups,
          stride[0], stride[1], pad[0], pad[1], pad[2], pad[3],    dilation[0], dilation[1]};
}

std::vector<linear::ConvolutionShape> shapes() {
  return {
      shape_of({1, 1, 1, 1}, 1, {1, 1}, 1, {1, 1}, {0, 0, 0, 0}, {1, 1}),
      shape_of({2, 3, 4, 5}, 2, {1, 1}, 1, {1, 1}, {0, 0, 0, 0}, {1, 1}),
      shape_of({1, 1, 6, 6}, 2, {5, 5}, 1, {1, 1}, {2, 2, 2, 2}, {1, 1}),
      shape_of({2, 2, 7, 6}, 4, {3, 2}, 2, {2, 3}, {1, 0, 2, 1}, {1, 1}),
      shape_of({1, 3, 8, 7}, 3, {3, 3}, 3, {1, 2}, {2, 1, 2, 1}, {2, 2}),
      shape_of({3, 4, 5, 5}, 4, {2, 3}, 4, {3, 1}, {0, 3, 1, 0}, {1, 2}),
      shape_of({1, 2, 3, 9}, 1, {1, 3}, 1, {4, 4}, {0, 0, 0, 0}, {1, 1}),
      shape_of({1, 1, 2, 2}, 1, {3, 3}, 1, {1, 1}, {3, 3, 3, 3}, {1, 1}),
      shape_of({1, 3, 9, 9}, 5, {3, 3}, 1, {2, 2}, {1, 1, 1, 1}, {1, 1}),
      shape_of({2, 6, 8, 8}, 12, {3, 3}, 6, {1, 1}, {1, 1, 1, 1}, {1, 1}),
      shape_of({1, 5, 9, 9}, 3, {1, 1}, 1, {2, 2}, {0, 0, 0, 0}, {1, 1}),
      shape_of({1, 2, 11, 12}, 3, {7, 7}, 1, {2, 2}, {3, 3, 3, 3}, {1, 1}),
      shape_of({1, 1, 3, 3}, 2, {2, 2}, 1, {5, 5}, {4, 4, 4, 4}, {1, 1}),
  };
}

TEST(LatticeConvolution, EveryShapeIsExact) {
  for (const Way way : {Way::direct, Way::prepared})
    for (const int owner : {0, 1}) {
      std::vector<Case> cases;
      for (const linear::ConvolutionShape& shape : shapes()) {
        cases.push_back({{kShared, 32}, {owner, 8, true}, shape, 32});
        cases.push_back({{1 - owner, 9, false}, {owner, 7, false}, shape, 40});
      }
      expect_convolutions(owner, lattice::kSwitchingSets[2], cases, way);
    }
}

// Small shapes in all combinations.
TEST(LatticeConvolution, StridesPaddingsDilationsAndGroups) {
  std::vector<Case> cases;
  for (const i64 kernel : {1, 2, 3})
    for (const i64 stride : {1, 2, 3})
      for (const i64 pad : {0, 1, 2})
        for (const i64 dilation : {1, 2})
          for (const i64 groups : {1, 2})
            cases.push_back({{kShared, 24},
                             {0, 6, true},
                             shape_of({2, 2, 5, 6}, 4, {kernel, kernel}, groups, {stride, 1},
                                      {pad, 1, 0, pad}, {dilation, dilation}),
                             24});
  expect_convolutions(0, lattice::kSwitchingSets[5], cases, Way::direct);
  expect_convolutions(0, lattice::kSwitchingSets[6], cases, Way::prepared);
}

TEST(LatticeConvolution, TilesOfImagesThatFillMoreThanOnePolynomial) {
  expect_convolutions(0, lattice::kSwitchingSets[1],
                      {{{kShared, 32},
                        {0, 8, true},
                        shape_of({1, 2, 90, 70}, 3, {3, 3}, 1, {1, 1}, {1, 1, 1, 1}, {1, 1}),
                        32},
                       {{kShared, 32},
                        {0, 8, true},
                        shape_of({2, 1, 3, 3000}, 2, {3, 5}, 1, {1, 1}, {1, 2, 1, 2}, {1, 1}),
                        32},
                       {{kShared, 32},
                        {0, 8, true},
                        shape_of({1, 2, 120, 130}, 2, {7, 7}, 1, {2, 2}, {3, 3, 3, 3}, {1, 1}),
                        32},
                       {{kShared, 32},
                        {0, 8, true},
                        shape_of({9, 3, 32, 32}, 2, {3, 3}, 1, {1, 1}, {1, 1, 1, 1}, {1, 1}),
                        32}},
                      Way::direct);
}

// Many channels, of which transforms multiply a polynomial at once, and the largest weights.
TEST(LatticeConvolution, ExtremeWeightsAtEveryBound) {
  const linear::ConvolutionShape deep =
      shape_of({1, 96, 4, 4}, 40, {3, 3}, 1, {1, 1}, {1, 1, 1, 1}, {1, 1});
  // So many that a sum of transforms is cut.
  const linear::ConvolutionShape deeper =
      shape_of({1, 256, 4, 4}, 8, {3, 3}, 1, {1, 1}, {1, 1, 1, 1}, {1, 1});
  const linear::ConvolutionShape one =
      shape_of({1, 8, 8, 8}, 4, {3, 3}, 1, {1, 1}, {1, 1, 1, 1}, {1, 1});
  expect_convolutions(1, lattice::kSwitchingSets[0],
                      {{{kShared, 36}, {1, 12, true}, deep, 36},
                       {{0, 36, true}, {1, 11, false}, deep, 36},
                       {{kShared, 44}, {1, 12, true}, one, 44},
                       {{kShared, 24}, {1, 13, true}, deeper, 24},
                       {{kShared, 16}, {1, 16, true}, one, 16},
                       {{kShared, 20}, {1, 20, true}, one, 20}},
                      Way::direct, true);
}

TEST(LatticeConvolution, OverSoftSpoken) {
  const linear::ConvolutionShape shape =
      shape_of({2, 3, 8, 8}, 6, {3, 3}, 1, {2, 2}, {1, 1, 1, 1}, {1, 1});
  for (const Way way : {Way::direct, Way::prepared})
    expect_convolutions(0, lattice::kSwitchingSets[1], {{{kShared, 44}, {0, 12, true}, shape, 44}},
                        way, false, {false, 4});
}

TEST(LatticeConvolution, LayoutsForDearAndCheapBytesAreExact) {
  const linear::ConvolutionShape shape =
      shape_of({1, 8, 32, 32}, 8, {3, 3}, 1, {1, 1}, {1, 1, 1, 1}, {1, 1});
  std::vector<Case> cases;
  for (const i64 price : {0, 8, 1000})
    cases.push_back({{kShared, 32}, {0, 8, true}, shape, 32, price});
  const auto gap = [&](i64 price) {
    return convolution_layout({shape, {0, 8, true}, 32, price}, lattice::kSwitchingSets[2])
        ->product.choice.gap();
  };
  EXPECT_LT(gap(0), gap(1000));
  expect_convolutions(0, lattice::kSwitchingSets[2], cases, Way::direct);
}

TEST(LatticeConvolution, PixelsAreUploadedOnce) {
  const linear::ConvolutionShape shape =
      shape_of({1, 64, 32, 32}, 64, {3, 3}, 1, {1, 1}, {1, 1, 1, 1}, {1, 1});
  const auto layout = convolution_layout({shape, {0, 12, true}, 32}, lattice::kSwitchingSets[0]);
  const auto bits = [](const ConvolutionLayout& of) {
    return of.product.choice.columns.upload_bits;
  };
  const i64 up = packed_bytes_of(layout->product)[0], least = shape.in_count() * bits(*layout) / 8;
  EXPECT_GE(up, least);
  EXPECT_LT(up, least * 11 / 10);
  // Of a stride of two and one tap, a quarter of them.
  const linear::ConvolutionShape fourth =
      shape_of({1, 64, 32, 32}, 64, {1, 1}, 1, {2, 2}, {0, 0, 0, 0}, {1, 1});
  const auto other = convolution_layout({fourth, {0, 12, true}, 32}, lattice::kSwitchingSets[0]);
  EXPECT_EQ(packed_bytes_of(other->product)[0], shape.in_count() * bits(*other) / 8 / 4);
}

TEST(LatticeConvolution, OtherConvolutionsOfThePeerAreRefused) {
  const auto with = [](std::array<i64, 2> dilation, i64 pad) {
    return shape_of({1, 1, 6, 6}, 1, {2, 2}, 1, {1, 1}, {pad, 0, 0, 0}, dilation);
  };
  for (const linear::ConvolutionShape& theirs : {with({2, 2}, 0), with({1, 1}, 1)}) {
    int refused = 0;
    try {
      run_parties({}, [&](ot::Party& party) {
        const bool owns = party.rank == 0;
        PackingKeys keys{0, lattice::kSwitchingSets[0]};
        const linear::ConvolutionShape shape = owns ? with({1, 1}, 0) : theirs;
        const Words in(shape.in_count()), kernel(owns ? 4 : 0);
        Words out(shape.out_count());
        lattice_convolution(party, keys, {kShared, 32}, in, {{shape, {0, 8, true}, 32}, kernel},
                            out);
      });
    } catch (const ProtocolError&) {
      ++refused;
    } catch (const PeerDisconnected&) {
    }
    EXPECT_EQ(refused, 1);
  }
}

// Halves of other images, or of another preparation, are refused before anything is computed.
TEST(LatticeConvolution, PreparedHalvesThatDoNotBelongTogetherAreRefused) {
  const linear::ConvolutionShape shape =
      shape_of({2, 1, 6, 6}, 1, {2, 2}, 1, {1, 1}, {0, 0, 0, 0}, {1, 1});
  enum Wrong { none, other_preparation, other_images, other_batch };
  for (const Wrong wrong : {none, other_preparation, other_images, other_batch}) {
    int refused = 0;
    try {
      run_parties({}, [&](ot::Party& party) {
        const bool owns = party.rank == 0;
        PackingKeys keys{0, lattice::kSwitchingSets[0]};
        ConvolutionTask task{shape, {0, 8, true}, 32};
        const Words kernel(owns ? 4 : 0, 1), in(shape.in_count() / 2);
        const KernelUse both{task, kernel, fingerprint(task, kernel)};
        PreparedProduct first = prepare_convolution(party, keys, both);
        PreparedProduct second = prepare_convolution(party, keys, both);
        if (!owns && wrong == other_preparation) first = std::move(second);
        if (!owns && wrong == other_images) take_rows(first, 1);
        if (!owns && wrong == other_batch) ++first.batch;
        task.shape.batch = 1;
        Words out(task.shape.out_count());
        prepared_convolution(party, take_rows(first, 1), {kShared, 32}, in,
                             {task, kernel, fingerprint(task, kernel)}, out);
      });
    } catch (const ProtocolError&) {
      ++refused;
    } catch (const PeerDisconnected&) {
    }
    EXPECT_EQ(refused, wrong != none) << wrong;
  }
}

TEST(LatticeConvolution, RefusesWhatDoesNotFit) {
  const linear::ConvolutionShape shape =
      shape_of({2, 1, 6, 6}, 1, {2, 2}, 1, {1, 1}, {0, 0, 0, 0}, {1, 1});
  run_parties({}, [&](ot::Party& party) {
    const bool owns = party.rank == 0;
    const Words kernel(owns ? 4 : 0, 1), other(owns ? 4 : 0, 2), in(shape.in_count());
    Words out(shape.out_count());
    PackingKeys keys{0, lattice::kSwitchingSets[0]};
    const ConvolutionTask task{shape, {0, 8, true}, 32};
    const auto use = [&](const ConvolutionTask& of, const Words& words) {
      return KernelUse{of, words, fingerprint(of, words)};
    };
    const auto convolve = [&](Operand format, const KernelUse& of) {
      lattice_convolution(party, keys, format, in, of, out);
    };
    EXPECT_THROW(convolve({0, 8, true}, use(task, kernel)), InvalidArgument);
    EXPECT_THROW(convolve({kShared, 31}, use(task, kernel)), InvalidArgument);
    EXPECT_THROW(convolve({kShared, 64}, use({shape, {0, 8, true}, 64}, kernel)), InvalidArgument);
    EXPECT_THROW(convolve({kShared, 32}, use({shape, {0, 32, true}, 32}, kernel)), InvalidArgument);
    EXPECT_THROW(convolve({kShared, 32}, use({shape, {1, 8, true}, 32}, kernel)), InvalidArgument);
    EXPECT_EQ(party.channel.traffic().sent, 0);
    PreparedProduct prepared = prepare_convolution(party, keys, use(task, kernel));
    ConvolutionTask shifted = task;
    shifted.shape.pad_top = 1;
    shifted.shape.height = 5;
    const i64 sent = party.channel.traffic().sent;
    PreparedProduct copy = prepared;
    EXPECT_THROW(prepared_convolution(party, copy, {kShared, 32}, in, use(shifted, kernel), out),
                 InvalidArgument);
    if (owns) {
      EXPECT_THROW(prepared_convolution(party, copy, {kShared, 32}, in, use(task, other), out),
                   InvalidArgument);
    }
    EXPECT_EQ(party.channel.traffic().sent, sent);
    prepared_convolution(party, std::move(prepared), {kShared, 32}, in, use(task, kernel), out);
  });
}

}  // namespace
}  // namespace privml::twopc
