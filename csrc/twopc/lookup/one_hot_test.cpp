// SPDX-License-Identifier: Apache-2.0
#include "twopc/lookup/one_hot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "twopc/testing/parties.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

void make_one_hots(ot::Party& party, i64 n, int bits, RandomOneHots& random) {
  draw_one_hots(party, n, bits, random);
  begin_one_hots(party, random);
  for (int step = 0; step < one_hot_steps(bits); ++step) advance_one_hots(party, random);
}

void cost_one_hots(ot::CostMeter& meter, i64 n, int bits) {
  cost_draw_one_hots(meter, n, bits);
  for (int step = 0; step < one_hot_steps(bits); ++step)
    cost_flight(meter, one_hot_flight(n, bits, step));
}

// Bit j of the vector of instance i.
u64 entry(const RandomOneHots& random, i64 i, i64 j) {
  const int row = random.bits - random.row_bits;
  return random.rows[(i << random.row_bits) + (j >> row)] >> (j & low_mask(row)) & 1;
}

TEST(OneHot, VectorsAndPlacesAgree) {
  for (int bits = 1; bits <= 10; ++bits) {
    const i64 n = 4 << bits;
    Both<RandomOneHots> random;
    const Outcome outcome = run_parties(
        {}, [&](ot::Party& party) { make_one_hots(party, n, bits, random[party.rank]); });
    std::vector<i64> seen(1 << bits, 0);
    for (i64 i = 0; i < n; ++i) {
      const i64 place =
          static_cast<i64>((random[0].place[i] + random[1].place[i]) & low_mask(bits));
      ++seen[place];
      for (i64 j = 0; j < 1 << bits; ++j)
        ASSERT_EQ(entry(random[0], i, j) ^ entry(random[1], i, j), j == place ? 1 : 0)
            << bits << " bits, instance " << i << ", entry " << j;
    }
    // Four places are expected each; a place that is never drawn has a chance of e^-4.
    EXPECT_LE(std::ranges::count(seen, 0), (1 << bits) / 8 + 3) << bits;
    expect_cost_equals(outcome, [&](ot::CostMeter& meter) { cost_one_hots(meter, n, bits); });
  }
}

TEST(OneHot, SeveralTablesAtOnePlace) {
  for (int bits : {1, 2, 5, 6, 8, 10})
    for (const OtKind& ot : {OtKind{}, OtKind{false, 4}}) {
      const i64 n = 300;
      const Words narrow = random_words(i64{1} << bits, 13, 2),
                  wide = random_words(i64{1} << bits, 64, 3);
      const Words places = random_words(n, bits, 5);
      const Both<Words> index = share(places, bits);
      Both<Words> narrow_out{Words(n), Words(n)}, wide_out{Words(n), Words(n)};
      const auto cost = [&](ot::CostMeter& meter, i64 count) {
        cost_one_hots(meter, count, bits);
        cost_flight(meter, open_places_flight(count, bits));
      };
      const Outcome outcome = run_parties(ot, [&](ot::Party& party) {
        const TableAt tables[] = {{narrow, narrow_out[party.rank]}, {wide, wide_out[party.rank]}};
        in_chunks(party, n, cost, [&](i64, i64) {
          RandomOneHots random;
          make_one_hots(party, n, bits, random);
          AlignedVector<u64> opened;
          write_places(party, random, index[party.rank], opened);
          read_places(party, random, opened);
          look_up_at(random, opened, tables);
        });
      });
      for (i64 i = 0; i < n; ++i) {
        ASSERT_EQ(narrow_out[0][i] ^ narrow_out[1][i], narrow[places[i]]);
        ASSERT_EQ(wide_out[0][i] ^ wide_out[1][i], wide[places[i]]);
      }
      expect_cost_equals(outcome, [&](ot::CostMeter& meter) { cost_in_chunks(meter, n, cost); });
    }
}

TEST(OneHot, BitsOnTheWireAreAsStated) {
  for (int bits = 1; bits <= 10; ++bits) {
    const i64 n = 1024;
    ot::CostMeter meter(ot::RcotCost{"ideal", 0, 1, i64{1} << 62});
    cost_one_hots(meter, n, bits);
    cost_flight(meter, open_places_flight(n, bits));
    const double sent = 8.0 * static_cast<double>(meter.bytes[0] + meter.bytes[1]) / n;
    const double cots = static_cast<double>(meter.cots[0] + meter.cots[1]) / n;
    EXPECT_DOUBLE_EQ(one_hot_bits(bits, 0), sent) << bits;
    EXPECT_NEAR(one_hot_bits(bits, 8), sent + 8 * cots, 1e-6) << bits;
    const double products = 2 * (std::ldexp(1, bits) - bits - 1);
    EXPECT_LE(sent, products + 2 * bits + bits * (bits + 1) / 2.0 + 4.5 * std::ldexp(1, bits / 2))
        << bits;
  }
}

TEST(OneHot, RefusesOtherNumbersOfBits) {
  EXPECT_THROW(one_hot_steps(0), InvalidArgument);
  EXPECT_THROW(one_hot_steps(11), InvalidArgument);
}

}  // namespace
}  // namespace privml::twopc
