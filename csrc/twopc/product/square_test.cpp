// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/square.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "twopc/product/multiplication.h"
#include "twopc/testing/parties.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

constexpr FactorFormat general(int bits) { return {bits, true}; }
constexpr FactorFormat plain(int bits) { return {bits, false}; }
constexpr FactorFormat nonnegative(int bits) { return {bits, true, true}; }
constexpr FactorFormat bounded(int bits) { return {bits, true, false, false, true}; }

void expect_squares(const Both<Words>& x, FactorFormat f, int ell, const OtKind& ot = {},
                    bool ciphertexts = false) {
  SCOPED_TRACE(::testing::Message()
               << f.bits << (f.is_signed ? " signed " : " ")
               << (f.nonnegative ? "nonnegative " : "") << (f.bounded ? "bounded " : "") << ell);
  const i64 n = std::ssize(x[0]);
  Both<Words> out{Words(n), Words(n)};
  const Outcome outcome = run_parties(ot, [&](ot::Party& party) {
    party.ciphertexts = ciphertexts;
    square(party, x[party.rank], f, ell, out[party.rank]);
  });
  const Words squares = reconstruct(out, ell);
  for (i64 i = 0; i < n; ++i) {
    const u64 word = (x[0][i] + x[1][i]) & low_mask(f.bits);
    const u64 value = f.is_signed ? static_cast<u64>(to_signed(word, f.bits)) : word;
    ASSERT_EQ(squares[i], (value * value) & low_mask(ell)) << x[0][i] << " " << x[1][i];
  }
  expect_cost_equals(outcome, [&](ot::CostMeter& m) {
    m.ciphertexts = ciphertexts;
    cost_square(m, n, f, ell);
  });
}

bool fits(u64 word, FactorFormat f) {
  const i64 value = to_signed(word & low_mask(f.bits), f.bits), quarter = i64{1} << (f.bits - 2);
  if (f.nonnegative) return value >= 0;
  return !f.bounded || (value >= -quarter && value < quarter);
}

TEST(Square, AllSharesOfSmallWidths) {
  for (int bits = 2; bits <= 5; ++bits)
    for (const FactorFormat f : {general(bits), plain(bits), nonnegative(bits), bounded(bits)}) {
      const Both<Words> all = all_share_pairs(bits);
      Both<Words> x;
      for (size_t i = 0; i < all[0].size(); ++i)
        if (fits(all[0][i] + all[1][i], f))
          for (int r : {0, 1}) x[r].push_back(all[r][i]);
      for (int ell = bits; ell <= 2 * bits - (f.bounded ? 1 : 0); ++ell) expect_squares(x, f, ell);
    }
}

TEST(Square, RealWidths) {
  for (const auto& [f, ell] : {std::pair<FactorFormat, int>{general(13), 26},
                               {plain(16), 32},
                               {general(32), 64},
                               {general(32), 40},
                               {general(64), 64},
                               {bounded(15), 26},
                               {bounded(18), 32},
                               {bounded(33), 64},
                               {nonnegative(20), 40}})
    for (const i64 n : {1, 2, 99}) {
      Words values = random_words(n, f.bits - (f.bounded || f.nonnegative ? 1 : 0), 7);
      if (f.bounded)
        for (u64& v : values) v = (v - (u64{1} << (f.bits - 2))) & low_mask(f.bits);
      Both<Words> x = share(values, f.bits, 3);
      add_noise_above(x, f.bits);
      expect_squares(x, f, ell);
    }
}

TEST(Square, OfNothing) { expect_squares({}, general(16), 32); }

TEST(Square, OverSoftSpoken) {
  expect_squares(share(random_words(300, 16, 1), 16), general(16), 32, {false, 4});
}

TEST(Square, LongerThanAChunk) {
  const i64 n = (i64{1} << 16) + 3;
  expect_squares(share(random_words(n, 6, 1), 6), general(6), 12);
}

i64 bytes_of(i64 n, FactorFormat f, int ell, bool ciphertexts) {
  ot::CostMeter meter{ot::RcotCost{"ideal", 0, 1, 1}};
  meter.ciphertexts = ciphertexts;
  cost_square(meter, n, f, ell);
  return meter.bytes[0] + meter.bytes[1];
}

TEST(Square, ByCiphertextsWhereThereAreManyLongNumbers) {
  const i64 n = (i64{1} << 16) + 3;
  for (const auto& [f, ell] : {std::pair<FactorFormat, int>{bounded(19), 36},
                               {general(16), 32},
                               {nonnegative(24), 40},
                               {plain(32), 64},
                               {general(40), 64}}) {
    Words values = random_words(n, f.bits - (f.bounded || f.nonnegative ? 1 : 0), 7);
    if (f.bounded)
      for (u64& v : values) v = (v - (u64{1} << (f.bits - 2))) & low_mask(f.bits);
    Both<Words> x = share(values, f.bits, 3);
    add_noise_above(x, f.bits);
    expect_squares(x, f, ell, {}, true);
    EXPECT_LT(bytes_of(n, f, ell, true) * 4, bytes_of(n, f, ell, false) * 3);
    EXPECT_EQ(bytes_of(100, f, ell, true), bytes_of(100, f, ell, false));
  }
  expect_squares(share(random_words(9000, 16, 1), 16), general(16), 32, {false, 4}, true);
  EXPECT_EQ(bytes_of(n, general(6), 12, true), bytes_of(n, general(6), 12, false));
}

// One cross term instead of two, and one carry instead of two.
TEST(Square, TakesHalfTheBytesOfAProduct) {
  ot::CostMeter squares{ot::RcotCost{"ideal", 0, 1, 1}}, products{ot::RcotCost{"ideal", 0, 1, 1}};
  cost_square(squares, 4096, general(16), 32);
  cost_multiply(products, 4096, general(16), general(16), 32);
  EXPECT_LE(2 * (squares.bytes[0] + squares.bytes[1]), products.bytes[0] + products.bytes[1]);
}

TEST(Square, RefusesWrongArguments) {
  run_parties({}, [](ot::Party& p) {
    Words x(2), out(2), longer(3);
    EXPECT_THROW(square(p, x, general(16), 33, out), InvalidArgument);
    EXPECT_THROW(square(p, x, bounded(16), 32, out), InvalidArgument);
    EXPECT_THROW(square(p, x, general(16), 15, out), InvalidArgument);
    EXPECT_THROW(square(p, x, general(1), 1, out), InvalidArgument);
    EXPECT_THROW(square(p, x, general(33), 65, out), InvalidArgument);
    EXPECT_THROW(square(p, x, {16, true, false, true}, 32, out), InvalidArgument);
    EXPECT_THROW(square(p, x, {16, true, true, false, true}, 31, out), InvalidArgument);
    EXPECT_THROW(square(p, x, general(16), 32, longer), InvalidArgument);
  });
}

}  // namespace
}  // namespace privml::twopc
