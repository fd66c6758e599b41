// SPDX-License-Identifier: Apache-2.0
// One conformance test for every provider of random correlated OT, through the pools.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "base/testing/sanitized.h"
#include "net/tcp.h"
#include "ot/schedule.h"
#include "ot/testing/parties.h"

namespace privml::ot::testing {
namespace {

using Blocks = std::vector<crypto::Block>;

int popcount(crypto::Block b) { return std::popcount(b.lo) + std::popcount(b.hi); }

bool all_distinct(Blocks blocks) {
  const auto key = [](crypto::Block b) { return std::pair(b.lo, b.hi); };
  std::ranges::sort(blocks, {}, key);
  return std::ranges::adjacent_find(blocks) == blocks.end();
}

// q (sender's) and t (receiver's) of one direction.
struct Correlations {
  crypto::Block delta{};
  Blocks q, t;
};

// Draws `sizes` one after another in both directions; index is the sender's rank.
std::array<Correlations, 2> draw_both(const OtConfig& config, const std::vector<i64>& sizes) {
  std::array<Correlations, 2> drawn;
  run_session(config, [&](Party& party) {
    Correlations& as_sender = drawn[party.rank];
    Blocks& t = drawn[1 - party.rank].t;
    as_sender.delta = party.sender.delta();
    for (i64 size : sizes) {
      Blocks mine(size), theirs(size);
      if (party.rank == 0) {
        draw_as_sender(party, mine.data(), size);
        draw_as_receiver(party, theirs.data(), size);
      } else {
        draw_as_receiver(party, theirs.data(), size);
        draw_as_sender(party, mine.data(), size);
      }
      as_sender.q.insert(as_sender.q.end(), mine.begin(), mine.end());
      t.insert(t.end(), theirs.begin(), theirs.end());
    }
  });
  return drawn;
}

void expect_correlated(const OtConfig& config, const std::vector<i64>& sizes) {
  for (const Correlations& c : draw_both(config, sizes)) {
    ASSERT_EQ(c.q.size(), c.t.size());
    EXPECT_EQ(crypto::low_bit(c.delta), 1);
    i64 ones = 0, bits = 0;
    for (size_t i = 0; i < c.q.size(); ++i) {
      ASSERT_EQ(crypto::low_bit(c.q[i]), 0) << i;
      ASSERT_EQ(c.q[i] ^ crypto::select(crypto::low_bit(c.t[i]), c.delta), c.t[i]) << i;
      ones += crypto::low_bit(c.t[i]);
      bits += popcount(c.q[i]);
    }
    // Within 6 standard deviations of the binomial distribution.
    const double n = static_cast<double>(c.q.size());
    EXPECT_NEAR(static_cast<double>(ones), n / 2, 6 * std::sqrt(n) / 2);
    EXPECT_NEAR(static_cast<double>(bits), n * 127 / 2, 6 * std::sqrt(n * 127) / 2);
    EXPECT_TRUE(all_distinct(c.q));
  }
}

class RcotConformance : public ::testing::TestWithParam<OtConfig> {};

TEST_P(RcotConformance, CorrelationsHoldForAllSizesAndRepeatedDraws) {
  const i64 granularity = rcot_cost(GetParam()).granularity;
  std::vector<i64> sizes{1, 0, 7, granularity + 1, 4097};
  if (!privml::testing::kSanitized)
    sizes = {1, 0, 7, granularity, granularity + 1, 1000, 20003, 5000, 1, 4097, 12345};
  expect_correlated(GetParam(), sizes);
}

TEST_P(RcotConformance, DirectionsAreIndependent) {
  const auto drawn = draw_both(GetParam(), {512});
  EXPECT_FALSE(drawn[0].delta == drawn[1].delta);
  for (int i = 0; i < 512; ++i) EXPECT_FALSE(drawn[0].q[i] == drawn[1].q[i]);
}

TEST_P(RcotConformance, OnlyTheSenderKnowsTheOffset) {
  run_session(GetParam(), [](Party& party) {
    EXPECT_EQ(party.sender.role(), OtRole::sender);
    EXPECT_EQ(party.receiver.role(), OtRole::receiver);
    EXPECT_THROW(party.receiver.delta(), InvalidArgument);
  });
}

TEST_P(RcotConformance, PoolHandsOutOnceAndNeverMoreThanItHas) {
  run_session(GetParam(), [](Party& party) {
    reserve(party, 300, 300);
    CotPool& pool = party.rank == 0 ? party.sender : party.receiver;
    const i64 stock = pool.available();
    EXPECT_GE(stock, 300);
    Blocks out(stock + 1);
    EXPECT_THROW(pool.take(out.data(), stock + 1), InvalidArgument);
    EXPECT_THROW(pool.take(out.data(), -1), InvalidArgument);
    pool.take(out.data(), 100);
    pool.take(out.data() + 100, stock - 100);
    EXPECT_EQ(pool.available(), 0);
    EXPECT_THROW(pool.take(out.data(), 1), InvalidArgument);
    out.resize(stock);
    EXPECT_TRUE(all_distinct(out));
  });
}

TEST_P(RcotConformance, StoreDoesNotGrowWithUse) {
  run_session(GetParam(), [](Party& party) {
    CotPool& pool = party.rank == 0 ? party.sender : party.receiver;
    Blocks out(5000);
    for (int round = 0; round < 40; ++round) {
      party.rank == 0 ? reserve(party, 5000, 0) : reserve(party, 0, 5000);
      pool.take(out.data(), round % 2 == 0 ? 5000 : 4321);
      EXPECT_LE(pool.capacity(), 2 * pool.tile());
    }
  });
}

TEST_P(RcotConformance, WholeExtensionsPassTheStore) {
  const OtConfig config = GetParam();
  const i64 count = rcot_cost(config).granularity;
  std::array<std::array<Blocks, 2>, 2> drawn;
  std::array<SessionRecord, 2> records;
  for (const bool reserving : {false, true}) {
    records[reserving] = run_session(config, [&](Party& party) {
      const bool sending = party.rank == 0;
      CotPool& pool = sending ? party.sender : party.receiver;
      Blocks& out = drawn[reserving][party.rank];
      out.resize(count);
      if (reserving) sending ? reserve(party, count, 0) : reserve(party, 0, count);
      EXPECT_EQ(pool.available(), reserving ? count : 0);
      sending ? draw_as_sender(party, out.data(), count)
              : draw_as_receiver(party, out.data(), count);
      EXPECT_EQ(pool.capacity(), reserving ? count : 0);
    });
  }
  EXPECT_EQ(drawn[0], drawn[1]);
  EXPECT_EQ(records[0].sent_hash, records[1].sent_hash);
  for (int rank : {0, 1}) {
    const auto preprocess = [&](bool reserving) {
      const PhaseCount& phase =
          records[reserving].ledger[rank].phases[static_cast<int>(Phase::preprocess)];
      return std::array{phase.sent, phase.received, phase.depth};
    };
    EXPECT_EQ(preprocess(false), preprocess(true));
  }
}

TEST_P(RcotConformance, ExtendRefusesOddSizes) {
  run_session(GetParam(), [](Party& party) {
    const i64 too_many = party.sender.tile() + party.sender.granularity();
    EXPECT_THROW(party.sender.step(1, too_many), InvalidArgument);
    EXPECT_THROW(party.receiver.step(0, too_many), InvalidArgument);
    if (party.sender.granularity() > 1) {
      EXPECT_THROW(party.sender.step(1, party.sender.granularity() - 1), InvalidArgument);
    }
    EXPECT_THROW(party.sender.deposit(party.sender.capacity() + 1), InvalidArgument);
    EXPECT_THROW(reserve(party, -1, 0), InvalidArgument);
  });
}

TEST_P(RcotConformance, ReservedStockKeepsItsOrderWhenTheStoreMoves) {
  // Party 0 draws piecewise between reservations, party 1 all at the end: the same correlations.
  std::array<Blocks, 2> seen;
  crypto::Block delta;
  const std::vector<i64> pieces{3000, 9000, 1, 20000, 500};
  run_session(GetParam(), [&](Party& party) {
    Blocks& mine = seen[party.rank];
    i64 total = 0;
    for (i64 piece : pieces) {
      total += piece;
      if (party.rank == 0) {
        delta = party.sender.delta();
        reserve(party, piece + 100, 0);
        mine.resize(total);
        party.sender.take(mine.data() + total - piece, piece);
      } else {
        reserve(party, 0, piece + 100);
        mine.resize(total);
        party.receiver.take(mine.data() + total - piece, piece);
      }
    }
  });
  for (size_t i = 0; i < seen[0].size(); ++i) {
    ASSERT_EQ(seen[0][i] ^ crypto::select(crypto::low_bit(seen[1][i]), delta), seen[1][i]) << i;
  }
}

std::vector<OtConfig> all_providers() {
  std::vector<OtConfig> configs{test_config("ideal"), test_config("silent", 0),
                                test_config("silent", 0, "malicious")};
  for (int k = 1; k <= 10; ++k) {
    configs.push_back(test_config("softspoken", k));
    configs.push_back(test_config("softspoken", k, "malicious"));
  }
  return configs;
}

INSTANTIATE_TEST_SUITE_P(Providers, RcotConformance, ::testing::ValuesIn(all_providers()),
                         [](const auto& info) {
                           return info.param.provider + std::to_string(info.param.k) + "_" +
                                  info.param.security;
                         });

TEST(RcotTiles, ReservationsLongerThanATile) {
  std::vector<OtConfig> configs{test_config("softspoken", 2, "malicious")};
  if (!privml::testing::kSanitized) {
    configs.push_back(test_config("ideal"));
    configs.push_back(test_config("softspoken", 4));
  }
  for (const OtConfig& config : configs) {
    const i64 tile = rcot_cost(config).tile;
    expect_correlated(config, {2 * tile + 3, tile - 1, 5});
  }
}

TEST(SoftSpokenSession, RunsDifferAndOnlyATestSeedMakesThemEqual) {
  const auto choices = [](const OtConfig& config) {
    std::vector<u8> bits;
    const auto drawn = draw_both(config, {256});
    for (crypto::Block t : drawn[0].t) bits.push_back(crypto::low_bit(t));
    bits.push_back(static_cast<u8>(drawn[0].delta.lo >> 8));
    return bits;
  };
  const OtConfig fresh{"softspoken", 4, "semi_honest", {}};
  EXPECT_NE(choices(fresh), choices(fresh));
  EXPECT_EQ(choices(test_config("softspoken")), choices(test_config("softspoken")));
}

// Both parties write a whole batch, far more than sockets buffer, before either reads.
TEST(SoftSpokenSession, LongReservationsInBothDirectionsOverTcp) {
  net::TcpListener listener("127.0.0.1", 0);
  std::array<std::unique_ptr<net::Channel>, 2> channels;
  const auto patience = std::chrono::seconds(20);
  std::thread client(
      [&] { channels[1] = net::connect_tcp("127.0.0.1", listener.port(), patience); });
  channels[0] = listener.accept(patience);
  client.join();
  const i64 n = rcot_cost(test_config("softspoken", 1)).tile + 5000;
  std::array<crypto::Block, 2> delta;
  std::array<Blocks, 2> q, t;  // indexed by the sender's rank
  run_pair(
      [&](int rank) {
        const auto resources =
            make_party_resources(*channels[rank], rank, test_config("softspoken", 1));
        Party& party = resources->party();
        reserve(party, n, n);
        delta[rank] = party.sender.delta();
        q[rank].resize(n);
        t[1 - rank].resize(n);
        party.sender.take(q[rank].data(), n);
        party.receiver.take(t[1 - rank].data(), n);
      },
      [&] {
        for (auto& channel : channels) channel->close();
      });
  for (int sender : {0, 1}) {
    for (i64 i = 0; i < n; ++i) {
      ASSERT_EQ(q[sender][i] ^ crypto::select(crypto::low_bit(t[sender][i]), delta[sender]),
                t[sender][i])
          << i;
    }
  }
}

TEST(OtSetup, RefusesWrongConfigurations) {
  auto [channel, peer] = net::make_memory_channels();
  EXPECT_THROW(make_party_resources(*channel, 2, test_config("softspoken")), InvalidArgument);
  EXPECT_THROW(make_party_resources(*channel, 0, test_config("softspoken", 0)), InvalidArgument);
  EXPECT_THROW(make_party_resources(*channel, 0, test_config("softspoken", 11)), InvalidArgument);
  EXPECT_THROW(make_party_resources(*channel, 0, test_config("other")), InvalidArgument);
  OtConfig unknown = test_config("softspoken");
  unknown.security = "none";
  EXPECT_THROW(make_party_resources(*channel, 0, unknown), InvalidArgument);
  EXPECT_THROW(make_party_resources(*channel, 0, {"ideal", 4, "semi_honest", {}}), InvalidArgument);
}

}  // namespace
}  // namespace privml::ot::testing
