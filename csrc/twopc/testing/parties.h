// SPDX-License-Identifier: Apache-2.0
// For tests: two parties on threads over a memory channel, and the comparison of a run with its
// cost function.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "ot/testing/parties.h"
#include "twopc/session/chunk.h"
#include "twopc/testing/shares.h"

namespace privml::twopc::testing {

struct OtKind {
  bool ideal = true;
  int k = 4;  // SoftSpoken's field degree, unused where ideal
  ot::OtConfig config() const {
    return ot::testing::test_config(ideal ? "ideal" : "softspoken", k);
  }
};

// What the run of a protocol did, setup excluded.
struct Outcome {
  ot::RcotCost rcot;
  ot::testing::SessionRecord record;
};

// Runs `body` as party 0 and as party 1; rethrows what either threw.
inline Outcome run_parties(const OtKind& ot, const std::function<void(ot::Party&)>& body) {
  return {ot::rcot_cost(ot.config()), ot::testing::run_session(ot.config(), body)};
}

// Bytes, depth and correlations at party `rank` equal those of the meter exactly.
inline void expect_counts_equal(int rank, const net::Traffic& traffic, const ot::Ledger& ledger,
                                const ot::CostMeter& meter) {
  SCOPED_TRACE(::testing::Message() << "party " << rank);
  EXPECT_EQ(traffic.sent, meter.bytes[rank]);
  EXPECT_EQ(traffic.received, meter.bytes[1 - rank]);
  EXPECT_EQ(traffic.depth, meter.depth[rank]);
  EXPECT_EQ(ledger.cots_as_sender, meter.cots[rank]);
  EXPECT_EQ(ledger.cots_as_receiver, meter.cots[1 - rank]);
  EXPECT_EQ(ledger.phases[static_cast<int>(ot::Phase::preprocess)].sent,
            meter.preprocess_bytes[rank]);
}

inline void expect_cost_equals(const Outcome& outcome,
                               const std::function<void(ot::CostMeter&)>& cost) {
  ot::CostMeter meter(outcome.rcot);
  cost(meter);
  for (int rank : {0, 1}) {
    expect_counts_equal(rank, outcome.record.traffic[rank], outcome.record.ledger[rank], meter);
  }
}

// One protocol and the cost function that must predict it.
struct CostRow {
  std::function<void(ot::Party&)> protocol;
  std::function<void(ot::CostMeter&)> cost;
};

inline constexpr i64 kLargestN = kChunk + 3;  // spans two chunks

// Runs rows(n) for several lengths up to kLargestN one after another in one session, with ideal and
// with SoftSpoken OT; after each row the counts equal those of the cost function.
inline void expect_costs_equal(const std::function<std::vector<CostRow>(i64)>& rows) {
  for (const OtKind& kind : {OtKind{true, 0}, OtKind{false, 4}}) {
    struct Snapshot {
      net::Traffic traffic;
      ot::Ledger ledger;
    };
    Both<std::vector<Snapshot>> seen;
    ot::CostMeter meter(ot::rcot_cost(kind.config()));
    std::vector<ot::CostMeter> expected;
    std::vector<CostRow> all;
    std::vector<std::string> names;
    for (const i64 n : {i64{1}, i64{7}, i64{1000}, kLargestN}) {
      for (const CostRow& row : rows(n)) {
        names.push_back("row " + std::to_string(all.size()) + ", n = " + std::to_string(n));
        all.push_back(row);
        row.cost(meter);
        expected.push_back(meter);
      }
    }
    run_parties(kind, [&](ot::Party& party) {
      const net::Traffic start = party.channel.traffic();
      for (const CostRow& row : all) {
        row.protocol(party);
        party.channel.flush();
        const net::Traffic now = party.channel.traffic();
        seen[party.rank].push_back(
            {{now.sent - start.sent, now.received - start.received, now.depth - start.depth},
             party.ledger});
      }
    });
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (int r : {0, 1}) {
        SCOPED_TRACE(::testing::Message() << (kind.ideal ? "ideal, " : "softspoken, ") << names[i]);
        expect_counts_equal(r, seen[r][i].traffic, seen[r][i].ledger, expected[i]);
      }
    }
  }
}

}  // namespace privml::twopc::testing
