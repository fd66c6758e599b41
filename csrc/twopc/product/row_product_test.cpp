// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/row_product.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "twopc/testing/parties.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

struct Shape {
  i64 rows, length;
  FactorFormat x;
  int y_bits, ell;
};

// Numbers of the format, those known not to be negative below half of its ring, bounded ones within
// a quarter.
Words numbers(const Shape& s) {
  if (s.x.bounded) {
    Words out = random_words(s.rows * s.length, s.x.bits - 1, 3);
    for (u64& word : out) word = (word - (u64{1} << (s.x.bits - 2))) & low_mask(s.x.bits);
    return out;
  }
  return random_words(s.rows * s.length, s.x.bits - (s.x.nonnegative ? 1 : 0), 3);
}

u64 value_of(const Shape& s, u64 x) {
  return s.x.is_signed ? static_cast<u64>(to_signed(x, s.x.bits)) : x;
}

void check(const OtKind& kind, const Shape& s) {
  SCOPED_TRACE(::testing::Message() << s.rows << " x " << s.length << ", " << s.x.bits << " x "
                                    << s.y_bits << " -> " << s.ell);
  const Words x = numbers(s), y = random_words(s.rows, s.y_bits - 1, 5);
  Both<Words> xs = share(x, s.x.bits, 1), ys = share(y, s.y_bits, 2);
  add_noise_above(xs, s.x.bits);
  add_noise_above(ys, s.y_bits);
  Both<Words> out{Words(x.size()), Words(x.size())};
  const Outcome outcome = run_parties(kind, [&](ot::Party& p) {
    multiply_rows(p, xs[p.rank], s.x, ys[p.rank], s.y_bits, s.ell, out[p.rank]);
  });
  const Words products = reconstruct(out, s.ell);
  for (i64 i = 0; i < std::ssize(x); ++i)
    ASSERT_EQ(products[i], (value_of(s, x[i]) * y[i / s.length]) & low_mask(s.ell)) << i;
  expect_cost_equals(outcome, [&](ot::CostMeter& meter) {
    cost_multiply_rows(meter, s.rows, s.length, s.x, s.y_bits, s.ell);
  });
}

TEST(RowProduct, IsTheProductOfEveryRow) {
  for (const FactorFormat x : {FactorFormat{22, true, true},
                               {22, true},
                               {22, false},
                               {38, true},
                               {24, true, false, false, true}}) {
    for (const auto& [rows, length] : {std::pair<i64, i64>{1, 1}, {3, 50}, {70, 1}, {5, 768}}) {
      check({}, {rows, length, x, 16, 38});
      check({false, 4}, {rows, length, x, 16, 38});
    }
  }
  check({}, {9, 20, {60, true}, 64, 64});
  check({}, {9, 20, {2, true, true}, 2, 3});
}

TEST(RowProduct, EverySmallPair) {
  const int bits = 4;
  for (u64 y = 0; y < 8; ++y) {
    const Both<Words> pairs = all_share_pairs(bits);
    for (u64 y0 = 0; y0 < 16; ++y0) {
      Both<Words> out{Words(pairs[0].size()), Words(pairs[0].size())};
      const Both<Words> number{Words{y0}, Words{(y - y0) & 15}};
      run_parties({}, [&](ot::Party& p) {
        multiply_rows(p, pairs[p.rank], {bits, true}, number[p.rank], bits, 7, out[p.rank]);
      });
      const Words products = reconstruct(out, 7);
      for (std::size_t i = 0; i < products.size(); ++i) {
        const i64 x = to_signed((pairs[0][i] + pairs[1][i]) & 15, bits);
        ASSERT_EQ(products[i], (static_cast<u64>(x) * y) & 127);
      }
    }
  }
}

TEST(RowProduct, RefusesWrongArguments) {
  run_parties({}, [](ot::Party& p) {
    Words x(6), y(2), uneven(4), out(6);
    EXPECT_THROW(multiply_rows(p, x, {20, true}, y, 16, 18, out), InvalidArgument);
    EXPECT_THROW(multiply_rows(p, x, {20, true}, y, 16, 65, out), InvalidArgument);
    EXPECT_THROW(multiply_rows(p, x, {20, true}, uneven, 16, 30, out), InvalidArgument);
  });
}

}  // namespace
}  // namespace privml::twopc
