// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/multiplication.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "twopc/product/dense.h"
#include "twopc/testing/parties.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

u64 value_of(u64 word, int bits, bool is_signed) {
  return ring_elements({&word, 1}, {bits, is_signed}, 64)[0];
}

void expect_products(const Both<Words>& x, FactorFormat fx, const Both<Words>& y, FactorFormat fy,
                     int ell, const OtKind& ot = {}, bool ciphertexts = false) {
  const i64 n = std::ssize(x[0]);
  Both<Words> out{Words(n), Words(n)};
  const Outcome outcome = run_parties(ot, [&](ot::Party& party) {
    const int r = party.rank;
    party.ciphertexts = ciphertexts;
    multiply(party, x[r], fx, y[r], fy, ell, out[r]);
  });
  const Words a = reconstruct(x, fx.bits), b = reconstruct(y, fy.bits),
              product = reconstruct(out, ell);
  for (i64 i = 0; i < n; ++i)
    ASSERT_EQ(product[i],
              (value_of(a[i], fx.bits, fx.is_signed) * value_of(b[i], fy.bits, fy.is_signed)) &
                  low_mask(ell))
        << fx.bits << (fx.is_signed ? "s " : "u ") << fy.bits << (fy.is_signed ? "s " : "u ") << ell
        << " shares " << x[0][i] << " " << x[1][i] << " " << y[0][i] << " " << y[1][i];
  for (int r : {0, 1})
    for (u64 word : out[r]) ASSERT_EQ(word & ~low_mask(ell), 0u);
  expect_cost_equals(outcome, [&](ot::CostMeter& m) {
    m.ciphertexts = ciphertexts;
    cost_multiply(m, n, fx, fy, ell);
  });
}

// All pairs of all share pairs of both widths.
std::pair<Both<Words>, Both<Words>> all_pairs(int m, int n) {
  const Both<Words> xs = all_share_pairs(m), ys = all_share_pairs(n);
  std::pair<Both<Words>, Both<Words>> pairs;
  for (size_t i = 0; i < xs[0].size(); ++i)
    for (size_t j = 0; j < ys[0].size(); ++j)
      for (int r : {0, 1}) pairs.first[r].push_back(xs[r][i]), pairs.second[r].push_back(ys[r][j]);
  return pairs;
}

Both<Words> nonnegative_only(const Both<Words>& shares, int bits, const Both<Words>& other,
                             int other_bits, Both<Words>& other_out) {
  Both<Words> out;
  for (size_t i = 0; i < shares[0].size(); ++i) {
    if (((shares[0][i] + shares[1][i]) >> (bits - 1)) & 1) continue;
    if (((other[0][i] + other[1][i]) >> (other_bits - 1)) & 1) continue;
    for (int r : {0, 1}) out[r].push_back(shares[r][i]), other_out[r].push_back(other[r][i]);
  }
  return out;
}

// The pairs whose most significant bits are these.
std::pair<Both<Words>, Both<Words>> with_msbs(const Both<Words>& x, int m, u8 msb_x,
                                              const Both<Words>& y, int n, u8 msb_y) {
  std::pair<Both<Words>, Both<Words>> out;
  for (size_t i = 0; i < x[0].size(); ++i) {
    if (((x[0][i] + x[1][i]) >> (m - 1) & 1) != msb_x) continue;
    if (((y[0][i] + y[1][i]) >> (n - 1) & 1) != msb_y) continue;
    for (int r : {0, 1}) out.first[r].push_back(x[r][i]), out.second[r].push_back(y[r][i]);
  }
  return out;
}

FactorFormat known(int bits, bool is_signed, u8 msb) {
  return {bits, is_signed, msb == 0, msb == 1};
}

bool is_bounded(u64 value, int bits) {
  const i64 number = to_signed(value & low_mask(bits), bits), most = i64{1} << (bits - 2);
  return number >= -most && number < most;
}

// The pairs of which the first (and, if asked, the second) number lies within a quarter of the
// ring.
std::pair<Both<Words>, Both<Words>> bounded_pairs(const Both<Words>& x, int m, const Both<Words>& y,
                                                  int n, bool both) {
  std::pair<Both<Words>, Both<Words>> out;
  for (size_t i = 0; i < x[0].size(); ++i) {
    if (!is_bounded(x[0][i] + x[1][i], m)) continue;
    if (both && !is_bounded(y[0][i] + y[1][i], n)) continue;
    for (int r : {0, 1}) out.first[r].push_back(x[r][i]), out.second[r].push_back(y[r][i]);
  }
  return out;
}

FactorFormat bounded(int bits) { return {bits, true, false, false, true}; }

class SmallWidths : public ::testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(SmallWidths, AllSharesAllSigns) {
  const auto [m, n] = GetParam();
  const auto [x, y] = all_pairs(m, n);
  for (int ell = std::max(m, n); ell <= m + n; ++ell)
    for (bool sx : {false, true})
      for (bool sy : {false, true})
        if (sx == sy || m + n <= 6) expect_products(x, {m, sx, false}, y, {n, sy, false}, ell);
}

TEST_P(SmallWidths, KnownMostSignificantBits) {
  const auto [m, n] = GetParam();
  const auto [x, y] = all_pairs(m, n);
  for (int ell = std::max(m, n); ell <= m + n; ++ell)
    for (bool is_signed : {false, true}) {
      for (u8 msb : {0, 1}) {
        const auto [a, b] = with_msbs(x, m, 1, y, n, msb);
        expect_products(a, known(m, is_signed, 1), b, known(n, is_signed, msb), ell);
      }
    }
}

TEST_P(SmallWidths, KnownNonnegative) {
  const auto [m, n] = GetParam();
  const auto [x, y] = all_pairs(m, n);
  Both<Words> b;
  const Both<Words> a = nonnegative_only(x, m, y, n, b);
  for (int ell = std::max(m, n); ell <= m + n; ++ell)
    for (bool is_signed : {false, true}) {
      expect_products(a, {m, is_signed, true}, b, {n, is_signed, true}, ell);
      expect_products(a, {m, is_signed, true}, b, {n, !is_signed, false}, ell);
    }
}

TEST_P(SmallWidths, Bounded) {
  const auto [m, n] = GetParam();
  if (m < 2) return;
  const auto [x, y] = all_pairs(m, n);
  for (int ell = std::max(m, n); ell < m + n; ++ell) {
    const auto [a, b] = bounded_pairs(x, m, y, n, false);
    for (bool is_signed : {false, true}) expect_products(a, bounded(m), b, {n, is_signed}, ell);
    if (n < 2) continue;
    const auto [c, d] = bounded_pairs(x, m, y, n, true);
    expect_products(c, bounded(m), d, bounded(n), ell);
  }
}

TEST_P(SmallWidths, BoundedWithAnOwnedFactor) {
  const auto [m, n] = GetParam();
  if (m < 2) return;
  Both<Words> x;
  Words y;
  const Both<Words> shares = all_share_pairs(m);
  for (size_t i = 0; i < shares[0].size(); ++i)
    for (u64 v = 0; v < u64{1} << n; ++v) {
      if (!is_bounded(shares[0][i] + shares[1][i], m)) continue;
      for (int r : {0, 1}) x[r].push_back(shares[r][i]);
      y.push_back(v);
    }
  const Words a = reconstruct(x, m);
  const i64 count = std::ssize(y);
  for (int ell = std::max(m, n); ell <= m + n; ++ell)
    for (const int owner : {0, 1}) {
      const KnownFormat fy{n, (ell & 1) != 0};
      Both<Words> out{Words(count), Words(count)};
      const Outcome outcome = run_parties({}, [&](ot::Party& party) {
        multiply_owned(party, owner, x[party.rank], bounded(m), party.rank == owner ? y : Words{},
                       fy, ell, out[party.rank]);
      });
      const Words product = reconstruct(out, ell);
      for (i64 i = 0; i < count; ++i)
        ASSERT_EQ(product[i],
                  (value_of(a[i], m, true) * value_of(y[i], n, fy.is_signed)) & low_mask(ell));
      expect_cost_equals(outcome, [&](ot::CostMeter& meter) {
        cost_multiply_owned(meter, owner, count, bounded(m), fy, ell);
      });
    }
}

TEST_P(SmallWidths, OwnedFactor) {
  const auto [m, n] = GetParam();
  const Both<Words> xs = all_share_pairs(m);
  Both<Words> x;
  Words y;
  for (size_t i = 0; i < xs[0].size(); ++i)
    for (u64 v = 0; v < u64{1} << n; ++v) {
      for (int r : {0, 1}) x[r].push_back(xs[r][i]);
      y.push_back(v);
    }
  const Words a = reconstruct(x, m);
  const i64 count = std::ssize(y);
  for (int ell = std::max(m, n); ell <= m + n; ++ell)
    for (int signs = 0; signs < 4; ++signs) {
      const int owner = (signs ^ ell) & 1;
      const FactorFormat fx{m, (signs & 1) != 0, false};
      const KnownFormat fy{n, (signs & 2) != 0};
      Both<Words> out{Words(count), Words(count)};
      const Outcome outcome = run_parties({}, [&](ot::Party& party) {
        multiply_owned(party, owner, x[party.rank], fx, party.rank == owner ? y : Words{}, fy, ell,
                       out[party.rank]);
      });
      const Words product = reconstruct(out, ell);
      for (i64 i = 0; i < count; ++i)
        ASSERT_EQ(product[i], (value_of(a[i], m, fx.is_signed) * value_of(y[i], n, fy.is_signed)) &
                                  low_mask(ell));
      expect_cost_equals(outcome, [&](ot::CostMeter& meter) {
        cost_multiply_owned(meter, owner, count, fx, fy, ell);
      });
    }
}

INSTANTIATE_TEST_SUITE_P(Multiply, SmallWidths,
                         ::testing::Combine(::testing::Values(1, 2, 3, 4),
                                            ::testing::Values(1, 2, 3, 4)));

TEST(Multiply, RandomAndEdgeValues) {
  for (const auto& [m, n, ell] : {std::array{16, 16, 32},
                                  {16, 16, 16},
                                  {8, 37, 45},
                                  {37, 27, 64},
                                  {32, 32, 64},
                                  {32, 32, 32},
                                  {64, 64, 64},
                                  {37, 8, 40}})
    for (bool is_signed : {false, true})
      expect_products(share(random_words(100, m, 1), m, 5), {m, is_signed, false},
                      share(random_words(100, n, 2), n, 6), {n, is_signed, false}, ell);
}

TEST(Multiply, LongerThanAChunk) {
  const i64 n = (i64{1} << 16) + 5;
  expect_products(share(random_words(n, 5, 1), 5), {5, true, false},
                  share(random_words(n, 4, 2), 4), {4, true, false}, 9);
}

TEST(Multiply, ByCiphertextsWhereThereAreManyLongNumbers) {
  for (const auto& [m, n, ell, count] : {std::array{16, 16, 32, 70000},
                                         {19, 31, 50, 20000},
                                         {32, 32, 64, 20001},
                                         {32, 32, 32, 20000},
                                         {40, 50, 64, 20000}}) {
    const FactorFormat fx{m, true}, fy{n, false};
    expect_products(share(random_words(count, m, 1), m, 5), fx,
                    share(random_words(count, n, 2), n, 6), fy, ell, {}, true);
    i64 bytes[2];
    for (const bool ciphertexts : {false, true}) {
      ot::CostMeter meter{ot::RcotCost{"ideal", 0, 1, 1}};
      meter.ciphertexts = ciphertexts;
      cost_multiply(meter, count, fx, fy, ell);
      bytes[ciphertexts] = meter.bytes[0] + meter.bytes[1];
    }
    EXPECT_LT(bytes[1] * 5, bytes[0] * 4) << m << " " << n;
  }
  expect_products(share(random_words(9000, 16, 1), 16), {16, true, false},
                  share(random_words(9000, 16, 2), 16), {16, true, false}, 32, {false, 4}, true);
}

TEST(Multiply, WithoutAComparisonTakesTheFlightsOfItsCrossTerms) {
  ot::CostMeter products{ot::RcotCost{"ideal", 0, 1, 1}}, cross{ot::RcotCost{"ideal", 0, 1, 1}};
  cost_multiply(products, 1000, bounded(15), {16, true, true}, 30);
  cost_cross_terms(cross, 1000, {15, false}, {16, false}, 30);
  EXPECT_EQ(products.depth, cross.depth);
}

TEST(Multiply, OverSoftSpoken) {
  expect_products(share(random_words(200, 16, 1), 16), {16, true, false},
                  share(random_words(200, 16, 2), 16), {16, true, false}, 32, {false, 4});
}

TEST(Multiply, RefusesWidthsOutsideTheRange) {
  Words x{1}, out(1);
  run_parties({}, [&](ot::Party& party) {
    EXPECT_THROW(multiply(party, x, {8}, x, {8}, 17, out), InvalidArgument);
    EXPECT_THROW(multiply(party, x, {8}, x, {9}, 8, out), InvalidArgument);
    EXPECT_THROW(multiply(party, x, {64}, x, {64}, 65, out), InvalidArgument);
    EXPECT_THROW(multiply_owned(party, 2, x, {8}, x, {8}, 8, out), InvalidArgument);
  });
}

TEST(Multiply, RefusesBitsThatDoNotFitTheFormat) {
  Words x(2), out(2);
  run_parties({}, [&](ot::Party& party) {
    EXPECT_THROW(multiply(party, x, {8, true, true, true}, x, {8}, 16, out), InvalidArgument);
    EXPECT_THROW(multiply(party, x, bounded(8), x, {8}, 16, out), InvalidArgument);
    EXPECT_THROW(multiply(party, x, {8, false, false, false, true}, x, {8}, 15, out),
                 InvalidArgument);
    EXPECT_THROW(multiply(party, x, {8, true, true, false, true}, x, {8}, 15, out),
                 InvalidArgument);
  });
}

}  // namespace
}  // namespace privml::twopc
