// SPDX-License-Identifier: Apache-2.0
#include "twopc/width/rectified_maximum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "twopc/compare/maximum.h"
#include "twopc/testing/parties.h"
#include "twopc/width/truncate_by_sign.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

i64 signed_value(u64 word, int bits) {
  return static_cast<i64>(word << (64 - bits)) >> (64 - bits);
}

void check(const RectifiedMaximum& shape, Both<Words> x, const OtKind& ot = {}, i64 factor = 32) {
  const i64 n = std::ssize(x[0]) / shape.window;
  SCOPED_TRACE(::testing::Message()
               << n << " windows of " << shape.window << ", " << shape.bits << " bits, shift "
               << shape.shift << ", into " << shape.out_bits);
  const Words values = reconstruct(x, shape.bits);
  add_noise_above(x, shape.bits);
  Both<Words> out{Words(n), Words(n)};
  const Outcome outcome = run_parties(ot, [&](ot::Party& party) {
    party.chunk_factor = factor;
    rectified_maximum(party, shape, x[party.rank], out[party.rank]);
  });
  const Words results = reconstruct(out, shape.out_bits);
  for (i64 i = 0; i < n; ++i) {
    i64 largest = 0;
    for (i64 g = 0; g < shape.window; ++g)
      largest = std::max(largest, signed_value(values[i * shape.window + g], shape.bits));
    const u64 wanted = static_cast<u64>(largest) >> shape.shift & low_mask(shape.out_bits);
    ASSERT_EQ(results[i], wanted) << i;
  }
  expect_cost_equals(outcome, [&](ot::CostMeter& m) {
    m.chunk_factor = factor;
    cost_rectified_maximum(m, n, shape);
  });
}

// Numbers of the size that maxima are promised.
Words numbers(i64 n, int bits, int seed = 1) {
  Words words = random_words(n, bits - 1, seed);
  for (u64& word : words) word = (word - (u64{1} << (bits - 2))) & low_mask(bits);
  for (u64& word : words)
    if (signed_value(word, bits) == -(i64{1} << (bits - 2))) word = 0;
  return words;
}

// Every window of small numbers, equal ones and negative ones among them.
TEST(RectifiedMaximum, EveryWindowOfSmallNumbers) {
  constexpr int kBits = 4;
  for (i64 window : {1, 2, 3, 4, 5}) {
    Words all;
    const i64 count = window > 4 ? 2401 : static_cast<i64>(std::pow(7, window));
    for (i64 index = 0; index < count; ++index) {
      i64 rest = index * (window > 4 ? 7 : 1);
      for (i64 g = 0; g < window; ++g, rest /= 7)
        all.push_back(static_cast<u64>(rest % 7 - 3) & low_mask(kBits));
    }
    for (int shift : {1, 2, 3})
      for (int out_bits : {1, 3, 6})
        for (i64 factor : {1, 1 << 12})
          check({window, kBits, shift, out_bits}, share(all, kBits), {}, factor);
  }
}

TEST(RectifiedMaximum, RealWidthsAndLengths) {
  for (const RectifiedMaximum& shape : {RectifiedMaximum{4, 21, 11, 20},
                                        {4, 21, 8, 21},
                                        {3, 33, 20, 40},
                                        {2, 64, 30, 16},
                                        {4, 16, 15, 2},
                                        {9, 21, 10, 12}})
    for (i64 n : {0, 1, 2, 100})
      for (const OtKind& ot : {OtKind{}, OtKind{false, 4}})
        for (i64 factor : {1, 32})
          check(shape, share(numbers(n * shape.window, shape.bits), shape.bits), ot, factor);
}

TEST(RectifiedMaximum, TakesFewerMessagesOverSlowLinks) {
  const auto depth = [](auto&& cost) {
    ot::CostMeter meter(ot::RcotCost{"ideal", 0, 1, 1});
    meter.chunk_factor = 32;
    cost(meter);
    return meter.depth[0];
  };
  const i64 together =
      depth([](ot::CostMeter& m) { cost_rectified_maximum(m, 100, {4, 21, 11, 20}); });
  const i64 apart = depth([](ot::CostMeter& m) {
    cost_maximum_windows(m, 100, 4, 21);
    cost_truncate_rectified(m, 100, 21, 11, 20);
  });
  EXPECT_EQ(together, 7);
  EXPECT_EQ(apart, 11);
}

TEST(RectifiedMaximum, RefusesWidths) {
  ot::CostMeter meter(ot::RcotCost{"ideal", 0, 1, 1});
  for (const RectifiedMaximum& shape :
       {RectifiedMaximum{0, 8, 3, 4}, {2, 8, 0, 4}, {2, 8, 8, 4}, {2, 65, 3, 4}, {2, 8, 3, 0}})
    EXPECT_THROW(cost_rectified_maximum(meter, 1, shape), InvalidArgument);
}

}  // namespace
}  // namespace privml::twopc
