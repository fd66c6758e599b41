// SPDX-License-Identifier: Apache-2.0
#include "twopc/width/truncate_by_sign.h"

#include <gtest/gtest.h>

#include <functional>
#include <tuple>

#include "base/error.h"
#include "twopc/compare/relu.h"
#include "twopc/testing/parties.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

void check(const TruncateIfNegative& shape, Both<Words> x, Both<Words> y, const OtKind& ot = {},
           i64 factor = 1) {
  SCOPED_TRACE(::testing::Message() << shape.bits << " bits, shift " << shape.shift << ", sign of "
                                    << shape.y_bits << ", n = " << x[0].size());
  const int width = shape.bits - shape.shift;
  const i64 n = std::ssize(x[0]);
  const Words values = reconstruct(x, shape.bits), signs = reconstruct(y, shape.y_bits);
  add_noise_above(x, shape.bits);
  add_noise_above(y, shape.y_bits);
  Both<Words> out{Words(n), Words(n)};
  const Outcome outcome = run_parties(ot, [&](ot::Party& party) {
    party.chunk_factor = factor;
    truncate_if_negative(party, shape, x[party.rank], y[party.rank], out[party.rank]);
  });
  const Words results = reconstruct(out, width + shape.wider);
  for (i64 i = 0; i < n; ++i)
    ASSERT_EQ(results[i], signs[i] >> (shape.y_bits - 1) ? values[i] >> shape.shift : 0) << i;
  expect_cost_equals(outcome, [&](ot::CostMeter& m) {
    m.chunk_factor = factor;
    cost_truncate_if_negative(m, n, shape);
  });
}

struct Rectified {
  int bits, shift, out_bits;
};

void check_rectified(const Rectified& shape, Both<Words> x, const OtKind& ot = {}, i64 factor = 1) {
  SCOPED_TRACE(::testing::Message() << shape.bits << " bits, shift " << shape.shift << ", into "
                                    << shape.out_bits << ", n = " << x[0].size());
  const i64 n = std::ssize(x[0]);
  const Words values = reconstruct(x, shape.bits);
  add_noise_above(x, shape.bits);
  Both<Words> out{Words(n), Words(n)};
  const Outcome outcome = run_parties(ot, [&](ot::Party& party) {
    party.chunk_factor = factor;
    truncate_rectified(party, x[party.rank], shape.bits, shape.shift, shape.out_bits,
                       out[party.rank]);
  });
  const Words results = reconstruct(out, shape.out_bits);
  for (i64 i = 0; i < n; ++i) {
    const bool negative = values[i] >> (shape.bits - 1) & 1;
    ASSERT_EQ(results[i], negative ? 0 : values[i] >> shape.shift & low_mask(shape.out_bits)) << i;
  }
  expect_cost_equals(outcome, [&](ot::CostMeter& m) {
    m.chunk_factor = factor;
    cost_truncate_rectified(m, n, shape.bits, shape.shift, shape.out_bits);
  });
}

TEST(TruncateRectified, AllSharesOfSmallNumbers) {
  for (int bits : {2, 3, 5})
    for (int shift = 1; shift < bits; ++shift)
      for (int out_bits : {1, 2, 4, 9})
        for (i64 factor : {1, 8})
          check_rectified({bits, shift, out_bits}, all_share_pairs(bits), {}, factor);
}

TEST(TruncateRectified, RealWidthsAndLengths) {
  for (const Rectified& shape : {Rectified{21, 10, 11},
                                 {21, 10, 8},
                                 {24, 12, 24},
                                 {37, 20, 40},
                                 {64, 1, 63},
                                 {64, 63, 1},
                                 {64, 30, 64},
                                 {40, 39, 3},
                                 {13, 2, 16}})
    for (i64 n : {0, 1, 2, 3, 300})
      for (const OtKind& ot : {OtKind{}, OtKind{false, 4}})
        for (i64 factor : {1, 8})
          check_rectified(shape, share(random_words(n, shape.bits), shape.bits), ot, factor);
}

TEST(TruncateRectified, AtTheEndsOfTheRing) {
  const Words ends{0, 1, 1023, 1024, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (1 << 21) - 1};
  check_rectified({21, 10, 16}, share(ends, 21));
}

i64 depth_of(i64 factor, const std::function<void(ot::CostMeter&)>& cost) {
  ot::CostMeter meter(ot::RcotCost{"ideal", 0, 1, 1});
  meter.chunk_factor = factor;
  cost(meter);
  return meter.depth[0];
}

// One exchange more than the sign alone takes; none where the carry is known before the sign.
TEST(TruncateRectified, SendsHardlyMoreMessagesThanRelu) {
  for (const auto& [factor, shift, more] :
       {std::tuple<i64, int, i64>{1, 8, 0}, {1, 20, 1}, {32, 8, 0}, {32, 20, 1}}) {
    SCOPED_TRACE(::testing::Message() << "factor " << factor << ", shift " << shift);
    const i64 alone = depth_of(factor, [](ot::CostMeter& m) { cost_relu(m, 100, 24); });
    const i64 both =
        depth_of(factor, [&](ot::CostMeter& m) { cost_truncate_rectified(m, 100, 24, shift, 12); });
    EXPECT_EQ(both, alone + more);
  }
}

TEST(TruncateRectified, RefusesWidths) {
  ot::CostMeter meter(ot::RcotCost{"ideal", 0, 1, 1});
  for (const auto& [bits, shift, out_bits] :
       {Rectified{8, 0, 4}, {8, 8, 4}, {65, 3, 4}, {8, 3, 0}, {8, 3, 65}})
    EXPECT_THROW(cost_truncate_rectified(meter, 1, bits, shift, out_bits), InvalidArgument);
}

bool is_negative(const Both<Words>& y, std::size_t k, int bits) {
  return ((y[0][k] + y[1][k]) >> (bits - 1) & 1) != 0;
}

// Every pair of shares of both numbers; with a wider ring those that keep the promise.
TEST(TruncateIfNegative, AllSharesOfSmallNumbers) {
  for (int wider : {0, 1, 5})
    for (int shift : {1, 2, 3})
      for (int y_bits : {1, 2, 3}) {
        const Both<Words> numbers = all_share_pairs(4), signs = all_share_pairs(y_bits);
        Both<Words> x, y;
        for (std::size_t i = 0; i < numbers[0].size(); ++i)
          for (std::size_t k = 0; k < signs[0].size(); ++k) {
            if (wider > 0 && is_negative(signs, k, y_bits) && is_negative(numbers, i, 4)) continue;
            for (int r : {0, 1}) {
              x[r].push_back(numbers[r][i]);
              y[r].push_back(signs[r][k]);
            }
          }
        check({4, shift, y_bits, wider}, x, y);
      }
}

TEST(TruncateIfNegative, IntoAWiderRing) {
  for (const TruncateIfNegative& shape :
       {TruncateIfNegative{21, 10, 4, 9}, {37, 20, 9, 40}, {64, 30, 64, 30}})
    for (i64 n : {1, 2, 300})
      for (const OtKind& ot : {OtKind{}, OtKind{false, 4}})
        for (i64 factor : {1, 8})
          check(shape, share(random_words(n, shape.bits - 1), shape.bits),
                share(random_words(n, shape.y_bits, 5), shape.y_bits), ot, factor);
}

TEST(TruncateIfNegative, RealWidthsAndLengths) {
  for (const TruncateIfNegative& shape :
       {TruncateIfNegative{21, 10, 4}, {64, 1, 64}, {64, 63, 1}, {33, 20, 9}, {24, 4, 32}})
    for (i64 n : {0, 1, 2, 3, 300})
      for (const OtKind& ot : {OtKind{}, OtKind{false, 4}})
        check(shape, share(random_words(n, shape.bits), shape.bits),
              share(random_words(n, shape.y_bits, 5), shape.y_bits), ot);
}

TEST(TruncateIfNegative, OverASlowLink) {
  for (const TruncateIfNegative& shape :
       {TruncateIfNegative{21, 10, 4}, {40, 24, 20}, {64, 63, 64}, {33, 20, 9}})
    for (i64 n : {1, 300})
      check(shape, share(random_words(n, shape.bits), shape.bits),
            share(random_words(n, shape.y_bits, 5), shape.y_bits), {}, 8);
}

TEST(TruncateIfNegative, RefusesWidths) {
  ot::CostMeter meter(ot::RcotCost{"ideal", 0, 1, 1});
  for (const TruncateIfNegative& shape :
       {TruncateIfNegative{8, 0, 4}, {8, 8, 4}, {65, 3, 4}, {8, 3, 0}, {8, 3, 65}, {64, 3, 4, 4}})
    EXPECT_THROW(cost_truncate_if_negative(meter, 1, shape), InvalidArgument);
}

}  // namespace
}  // namespace privml::twopc
