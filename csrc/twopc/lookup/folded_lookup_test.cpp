// SPDX-License-Identifier: Apache-2.0
#include "twopc/lookup/folded_lookup.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "twopc/testing/parties.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

struct Folded {
  Words first, second, high, low, positive;
  std::vector<u8> nonnegative;
};

void check(int bits, int index_bits, int place_bits, int low_bits, Both<Words> x,
           const OtKind& ot = {}, i64 factor = 1) {
  SCOPED_TRACE(::testing::Message() << bits << " " << index_bits << " " << place_bits << " "
                                    << low_bits << ", n = " << x[0].size());
  const std::vector<int> widths{5, 33};
  const FoldedLookupShape shape{bits, index_bits, place_bits, low_bits, widths};
  const Words values = reconstruct(x, bits);
  const i64 n = std::ssize(values);
  add_noise_above(x, bits);
  const Words table = random_words(i64{1} << index_bits, 5, 3),
              other = random_words(i64{1} << index_bits, 33, 4);
  const std::vector<std::span<const u64>> tables{table, other};
  Both<Folded> out;
  const Outcome outcome = run_parties(ot, [&](ot::Party& party) {
    party.chunk_factor = factor;
    Folded& own = out[party.rank];
    own = {Words(n), Words(n), Words(n), Words(n), Words(n), std::vector<u8>(n)};
    const std::vector<std::span<u64>> found{own.first, own.second};
    folded_lookup(party, shape, tables, x[party.rank],
                  {found, own.high, own.low, own.positive, own.nonnegative});
  });
  const auto sum = [&](Words Folded::* word, i64 i, int width) {
    return ((out[0].*word)[i] + (out[1].*word)[i]) & low_mask(width);
  };
  for (i64 i = 0; i < n; ++i) {
    const i64 value = to_signed(values[i], bits);
    const u64 size = static_cast<u64>(value < 0 ? -value : value);
    const u64 high = (value < 0 ? size - 1 : size) >> place_bits;
    ASSERT_EQ(out[0].nonnegative[i] ^ out[1].nonnegative[i], value >= 0) << value;
    ASSERT_EQ(sum(&Folded::high, i, bits - place_bits), high) << value;
    ASSERT_EQ(sum(&Folded::low, i, low_bits), (size - (high << place_bits)) & low_mask(low_bits))
        << value;
    ASSERT_EQ(sum(&Folded::positive, i, bits), value >= 0 ? size : 0) << value;
    const u64 place = high & low_mask(index_bits);
    ASSERT_EQ(out[0].first[i] ^ out[1].first[i], table[place]) << value;
    ASSERT_EQ(out[0].second[i] ^ out[1].second[i], other[place]) << value;
  }
  expect_cost_equals(outcome, [&](ot::CostMeter& m) {
    m.chunk_factor = factor;
    cost_folded_lookup(m, n, shape);
  });
}

TEST(FoldedLookup, OverASlowLink) {
  for (const auto& [bits, index_bits, place_bits, low_bits] :
       {std::array{12, 5, 5, 9}, {20, 6, 12, 20}, {31, 7, 20, 30}})
    for (i64 n : {1, 300})
      check(bits, index_bits, place_bits, low_bits, share(random_words(n, bits), bits), {}, 8);
}

TEST(FoldedLookup, AllSharesOfSmallNumbers) {
  for (const auto& [bits, index_bits, place_bits, low_bits] :
       {std::array{3, 1, 1, 2}, {4, 1, 2, 5}, {5, 2, 2, 4}, {6, 3, 1, 9}})
    check(bits, index_bits, place_bits, low_bits, all_share_pairs(bits));
}

TEST(FoldedLookup, RealWidthsAndLengths) {
  for (const auto& [bits, index_bits, place_bits, low_bits] :
       {std::array{16, 6, 8, 20}, {16, 5, 9, 12}, {32, 10, 6, 40}, {24, 4, 11, 64}})
    for (i64 n : {0, 1, 2, 300})
      for (const OtKind& ot : {OtKind{}, OtKind{false, 4}})
        check(bits, index_bits, place_bits, low_bits, share(random_words(n, bits), bits), ot);
}

TEST(FoldedLookup, RefusesShapes) {
  ot::CostMeter meter(ot::RcotCost{"ideal", 0, 1, 1});
  const std::vector<int> widths{5};
  for (const auto& [bits, index_bits, place_bits, low_bits] :
       {std::array{8, 4, 4, 9}, {8, 4, 0, 9}, {8, 0, 4, 9}, {16, 11, 2, 9}, {16, 4, 8, 8}})
    EXPECT_THROW(cost_folded_lookup(meter, 1, {bits, index_bits, place_bits, low_bits, widths}),
                 InvalidArgument);
}

}  // namespace
}  // namespace privml::twopc
