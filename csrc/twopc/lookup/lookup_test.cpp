// SPDX-License-Identifier: Apache-2.0
#include "twopc/lookup/lookup.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "twopc/lookup/lookup_two_level.h"
#include "twopc/testing/parties.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

void expect_lookup(int index_bits, int width, const Both<Words>& index, const OtKind& ot = {}) {
  const Words table = random_words(i64{1} << index_bits, width, 9);
  const i64 n = std::ssize(index[0]);
  Words places(n);
  for (i64 i = 0; i < n; ++i) places[i] = (index[0][i] + index[1][i]) & low_mask(index_bits);
  for (bool additive : {true, false}) {
    Both<Words> out{Words(n), Words(n)};
    const Outcome outcome = run_parties(ot, [&](ot::Party& party) {
      const auto run = additive ? lookup : lookup_xor;
      run(party, table, index[party.rank], index_bits, width, out[party.rank]);
    });
    for (i64 i = 0; i < n; ++i) {
      const u64 value =
          additive ? (out[0][i] + out[1][i]) & low_mask(width) : out[0][i] ^ out[1][i];
      ASSERT_EQ(value, table[places[i]]) << index_bits << " " << width << " at " << i;
    }
    expect_cost_equals(outcome, [&](ot::CostMeter& m) {
      additive ? cost_lookup(m, n, index_bits, width) : cost_lookup_xor(m, n, index_bits, width);
    });
  }
}

TEST(Lookup, AllSharesOfEveryIndexWidth) {
  for (int index_bits = 1; index_bits <= 6; ++index_bits)
    for (int width : {1, 5, 16, 37, 64})
      expect_lookup(index_bits, width, all_share_pairs(index_bits));
}

TEST(Lookup, EightBitIndex) {
  expect_lookup(8, 16, all_share_pairs(8));
  for (int width : {1, 32, 64}) expect_lookup(8, width, share(random_words(300, 8, 3), 8));
}

TEST(Lookup, LargerTables) {
  for (int index_bits : {9, 10})
    for (int width : {1, 20, 33}) {
      Words places(u64{1} << index_bits);
      for (size_t i = 0; i < places.size(); ++i) places[i] = i;
      expect_lookup(index_bits, width, share(places, index_bits));
    }
}

TEST(Lookup, SmallCountsAndBitsAboveTheWidth) {
  for (i64 n : {0, 1, 2, 3})
    for (int index_bits : {1, 2, 3, 5, 8, 10})
      for (int width : {9, 64})
        expect_lookup(index_bits, width, share(random_words(n, index_bits, 3), index_bits));
  Both<Words> index = share(random_words(40, 8, 3), 8);
  for (u64& word : index[0]) word |= 0xABC00;
  expect_lookup(8, 16, index);
}

TEST(Lookup, LongerThanAChunk) { expect_lookup(2, 3, share(random_words((1 << 16) + 3, 2, 3), 2)); }

TEST(Lookup, OverSoftSpoken) {
  expect_lookup(8, 16, share(random_words(200, 8, 3), 8), {false, 4});
  expect_lookup(4, 16, share(random_words(200, 4, 3), 4), {false, 8});
}

TEST(LookupTwoLevel, EverySplit) {
  for (int index_bits = 2; index_bits <= 8; ++index_bits)
    for (int column_bits = 1; column_bits <= 5 && column_bits < index_bits; ++column_bits)
      for (int width : {7, 33}) {
        const Words table = random_words(i64{1} << index_bits, width, 2);
        const Both<Words> index = index_bits <= 4
                                      ? all_share_pairs(index_bits)
                                      : share(random_words(99, index_bits, 4), index_bits);
        const LookupLevels levels{index_bits - column_bits, column_bits};
        const i64 n = std::ssize(index[0]);
        Both<Words> out{Words(n), Words(n)};
        const Outcome outcome = run_parties({}, [&](ot::Party& party) {
          const LevelLookup lookups[] = {
              {table, index[party.rank], levels, width, out[party.rank]}};
          lookup_two_level(party, lookups);
        });
        const Words places = reconstruct(index, index_bits);
        for (i64 i = 0; i < n; ++i) ASSERT_EQ(out[0][i] ^ out[1][i], table[places[i]]);
        const LevelShape shapes[] = {{levels, width}};
        expect_cost_equals(outcome, [&](ot::CostMeter& m) { cost_lookup_two_level(m, n, shapes); });
      }
}

TEST(LookupsXor, TablesOfSeveralShapesTogether) {
  const std::vector<TableShape> shapes{{8, 13}, {3, 5}, {8, 8}, {6, 40}};
  for (i64 n : {i64{0}, i64{1}, i64{5}, i64{300}, (i64{1} << 14) + 3}) {
    std::vector<Words> tables;
    std::vector<Both<Words>> indices, results;
    for (const auto& [index_bits, width] : shapes) {
      tables.push_back(random_words(i64{1} << index_bits, width, tables.size() + 1));
      indices.push_back(share(random_words(n, index_bits, tables.size()), index_bits));
      results.push_back({Words(n), Words(n)});
    }
    const Outcome outcome = run_parties({}, [&](ot::Party& party) {
      std::vector<TableLookup> lookups;
      for (size_t t = 0; t < shapes.size(); ++t)
        lookups.push_back({tables[t], indices[t][party.rank], shapes[t].index_bits, shapes[t].width,
                           results[t][party.rank]});
      lookups_xor(party, lookups);
    });
    for (size_t t = 0; t < shapes.size(); ++t) {
      const Words places = reconstruct(indices[t], shapes[t].index_bits);
      for (i64 i = 0; i < n; ++i)
        ASSERT_EQ(results[t][0][i] ^ results[t][1][i], tables[t][places[i]]) << "table " << t;
    }
    expect_cost_equals(outcome, [&](ot::CostMeter& m) { cost_lookups_xor(m, n, shapes); });
  }
}

TEST(TransferOneOfN, EveryChoice) {
  for (const auto& [index_bits, width] : {std::pair{1, 1}, {4, 2}, {4, 64}, {8, 3}})
    for (int sender : {0, 1}) {
      const i64 size = i64{1} << index_bits, n = 2 * size + 1;
      const Words messages = random_words(n * size, width, 5);
      Bits choices(n);
      for (i64 i = 0; i < n; ++i) choices[i] = static_cast<u8>(i % size);
      Words out(n);
      const Outcome outcome = run_parties({}, [&](ot::Party& party) {
        if (party.rank == sender) {
          transfer_one_of_n_send(party, messages, index_bits, width);
        } else {
          transfer_one_of_n_receive(party, choices, index_bits, width, out);
        }
      });
      for (i64 i = 0; i < n; ++i) ASSERT_EQ(out[i], messages[i * size + choices[i]]);
      expect_cost_equals(outcome, [&](ot::CostMeter& m) {
        cost_transfer_one_of_n(m, sender, n, index_bits, width);
      });
    }
}

TEST(Lookup, RefusesBadSizes) {
  Words table(4), index{1}, out(1);
  run_parties({}, [&](ot::Party& party) {
    EXPECT_THROW(lookup(party, table, index, 3, 8, out), InvalidArgument);
    EXPECT_THROW(lookup(party, Words(2048), index, 11, 8, out), InvalidArgument);
    EXPECT_THROW(lookup(party, table, index, 2, 65, out), InvalidArgument);
  });
}

}  // namespace
}  // namespace privml::twopc
