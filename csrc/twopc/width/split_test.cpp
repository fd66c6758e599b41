// SPDX-License-Identifier: Apache-2.0
#include "twopc/width/split.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "twopc/testing/parties.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

void expect_split(Both<Words> x, int bits, int shift, int low_bits, i64 factor = 1) {
  const Words values = reconstruct(x, bits);
  const i64 n = std::ssize(values);
  add_noise_above(x, bits);
  Both<Words> high{Words(n), Words(n)}, low = high;
  run_parties({}, [&](ot::Party& party) {
    const int r = party.rank;
    party.chunk_factor = factor;
    split_number(party, x[r], bits, shift, low_bits, high[r], low[r]);
  });
  const Words highs = reconstruct(high, bits - shift), lows = reconstruct(low, low_bits);
  for (i64 i = 0; i < n; ++i) {
    ASSERT_EQ(highs[i], values[i] >> shift) << bits << " " << shift;
    ASSERT_EQ(lows[i], values[i] & low_mask(shift)) << bits << " " << shift << " " << low_bits;
  }
}

TEST(Split, AllSharesOfSmallNumbers) {
  for (int bits = 2; bits <= 5; ++bits)
    for (int shift = 1; shift < bits; ++shift)
      for (int low_bits : {shift, shift + 1, bits + 2})
        for (i64 factor : {1, 32})
          expect_split(all_share_pairs(bits), bits, shift, low_bits, factor);
}

TEST(Split, RandomAtRealWidths) {
  for (const auto& [bits, shift, low_bits] :
       {std::tuple{16, 7, 27}, {32, 25, 60}, {37, 12, 12}, {64, 63, 64}, {64, 1, 33}})
    expect_split(share(random_words(1000, bits), bits), bits, shift, low_bits);
}

TEST(Split, CostsOfSeveralLengths) {
  expect_costs_equal([](i64 n) -> std::vector<CostRow> {
    std::vector<CostRow> rows;
    for (const auto& [bits, shift, low_bits] : {std::tuple{16, 7, 27}, {16, 9, 9}, {2, 1, 1}})
      rows.push_back({[=](ot::Party& p) {
                        const Words x(n, 5);
                        Words high(n), low(n);
                        split_number(p, x, bits, shift, low_bits, high, low);
                      },
                      [=](ot::CostMeter& m) { cost_split_number(m, n, bits, shift, low_bits); }});
    return rows;
  });
}

TEST(Split, RefusesBadWidths) {
  Words x(3), high(3), low(3), short_one(2);
  run_parties({}, [&](ot::Party& party) {
    EXPECT_THROW(split_number(party, x, 8, 0, 8, high, low), InvalidArgument);
    EXPECT_THROW(split_number(party, x, 8, 8, 8, high, low), InvalidArgument);
    EXPECT_THROW(split_number(party, x, 65, 8, 8, high, low), InvalidArgument);
    EXPECT_THROW(split_number(party, x, 8, 4, 3, high, low), InvalidArgument);
    EXPECT_THROW(split_number(party, x, 8, 4, 8, high, short_one), InvalidArgument);
  });
}

}  // namespace
}  // namespace privml::twopc
