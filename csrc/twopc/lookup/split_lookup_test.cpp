// SPDX-License-Identifier: Apache-2.0
#include "twopc/lookup/split_lookup.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "twopc/lookup/lookup.h"
#include "twopc/testing/parties.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

// Entries of all tables at the places of x, and the low parts.
void expect_split_lookup(int index_bits, int place_bits, int low_bits,
                         const std::vector<int>& widths, Both<Words> x, const OtKind& ot = {},
                         i64 factor = 1) {
  SCOPED_TRACE(::testing::Message() << index_bits << " " << place_bits << " " << low_bits);
  const int bits = index_bits + place_bits;
  const Words values = reconstruct(x, bits);
  const i64 n = std::ssize(values);
  add_noise_above(x, bits);
  std::vector<Words> tables;
  for (int width : widths)
    tables.push_back(random_words(i64{1} << index_bits, width, tables.size() + 7));
  const std::vector<std::span<const u64>> spans(tables.begin(), tables.end());
  Both<std::vector<Words>> found;
  Both<Words> low{Words(n), Words(n)};
  for (auto& words : found) words.assign(widths.size(), Words(n));
  const SplitLookupShape shape{index_bits, place_bits, low_bits, widths};
  const Outcome outcome = run_parties(ot, [&](ot::Party& party) {
    party.chunk_factor = factor;
    std::vector<Words>& mine = found[party.rank];
    const std::vector<std::span<u64>> out(mine.begin(), mine.end());
    split_lookup(party, shape, spans, x[party.rank], out, low[party.rank]);
  });
  const Words places = reconstruct(low, low_bits);
  for (i64 i = 0; i < n; ++i) {
    ASSERT_EQ(places[i], values[i] & low_mask(place_bits)) << "at " << i;
    for (size_t t = 0; t < tables.size(); ++t)
      ASSERT_EQ(found[0][t][i] ^ found[1][t][i], tables[t][values[i] >> place_bits])
          << "table " << t << " at " << i;
  }
  expect_cost_equals(outcome, [&](ot::CostMeter& meter) {
    meter.chunk_factor = factor;
    cost_split_lookup(meter, n, shape);
  });
}

TEST(SplitLookup, AllSharesOfSmallNumbers) {
  for (int index_bits = 1; index_bits <= 5; ++index_bits)
    for (int place_bits = 1; index_bits + place_bits <= 6; ++place_bits)
      expect_split_lookup(index_bits, place_bits, place_bits + 9, {25, 64},
                          all_share_pairs(index_bits + place_bits));
}

TEST(SplitLookup, RealWidths) {
  for (int index_bits : {1, 2, 3, 5, 7, 8, 10})
    for (int place_bits : {1, 6, 9, 20, 40})
      expect_split_lookup(
          index_bits, place_bits, std::max(place_bits, 30), {13, 40, 33},
          share(random_words(400, index_bits + place_bits), index_bits + place_bits));
}

TEST(SplitLookup, OverSoftSpokenAndAroundAChunk) {
  for (int index_bits : {4, 8})
    expect_split_lookup(index_bits, 8, 20, {26},
                        share(random_words(400, index_bits + 8), index_bits + 8), {false, 4});
  for (i64 n : {i64{0}, i64{1}, i64{2}, (i64{1} << 14) + 1})
    expect_split_lookup(3, 5, 12, {30, 30}, share(random_words(n, 8), 8));
}

TEST(SplitLookup, OverASlowLink) {
  for (int place_bits : {6, 16, 30})
    for (i64 n : {1, 400})
      expect_split_lookup(5, place_bits, 32, {13, 40},
                          share(random_words(n, 5 + place_bits), 5 + place_bits), {}, 8);
}

TEST(SplitLookup, TablesAtOnePlace) {
  for (int index_bits : {1, 4, 8, 10})
    for (const OtKind& ot : {OtKind{}, OtKind{false, 4}}) {
      const i64 n = 200;
      const std::vector<int> widths{20, 50};
      const Words places = random_words(n, index_bits),
                  first = random_words(i64{1} << index_bits, 20),
                  second = random_words(i64{1} << index_bits, 50, 2);
      const std::vector<std::span<const u64>> tables{first, second};
      const Both<Words> index = share(places, index_bits);
      Both<std::vector<Words>> found;
      for (auto& words : found) words.assign(2, Words(n));
      const Outcome outcome = run_parties(ot, [&](ot::Party& party) {
        std::vector<Words>& mine = found[party.rank];
        const std::vector<std::span<u64>> out(mine.begin(), mine.end());
        lookup_tables_xor(party, index_bits, widths, tables, index[party.rank], out);
      });
      for (i64 i = 0; i < n; ++i) {
        ASSERT_EQ(found[0][0][i] ^ found[1][0][i], first[places[i]]) << index_bits;
        ASSERT_EQ(found[0][1][i] ^ found[1][1][i], second[places[i]]) << index_bits;
      }
      expect_cost_equals(outcome, [&](ot::CostMeter& meter) {
        cost_lookup_tables_xor(meter, n, index_bits, widths);
      });
    }
}

TEST(SplitLookup, RefusesBadSizes) {
  const Words table(4), x(3);
  Words out(3), low(3);
  run_parties({}, [&](ot::Party& party) {
    const int width = 8;
    const std::span<const u64> tables[] = {table};
    const std::span<u64> found[] = {out};
    const std::span<const int> widths(&width, 1);
    EXPECT_THROW(split_lookup(party, {2, 0, 5, widths}, tables, x, found, low), InvalidArgument);
    EXPECT_THROW(split_lookup(party, {2, 5, 4, widths}, tables, x, found, low), InvalidArgument);
    EXPECT_THROW(split_lookup(party, {3, 5, 9, widths}, tables, x, found, low), InvalidArgument);
    EXPECT_THROW(split_lookup(party, {2, 5, 9, {}}, tables, x, found, low), InvalidArgument);
  });
}

}  // namespace
}  // namespace privml::twopc
