// SPDX-License-Identifier: Apache-2.0
#include "twopc/width/truncate_if_negative.h"

#include <gtest/gtest.h>

#include "base/error.h"
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
