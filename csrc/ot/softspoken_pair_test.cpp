// SPDX-License-Identifier: Apache-2.0
#include "ot/softspoken_pair.h"

#include <gtest/gtest.h>

#include "ot/testing/tampered.h"

namespace privml::ot::testing {
namespace {

constexpr i64 kCount = 512;
using Blocks = std::vector<crypto::Block>;

struct Ends {
  std::array<Blocks, 2> q, t;  // by the rank of the party that has them
  std::array<crypto::Block, 2> delta;
  std::array<net::Traffic, 2> setup;
};

SessionId id(u8 value) {
  SessionId bytes;
  bytes.fill(value);
  return bytes;
}

// Party r takes session[r] for the session's id.
Ends run(SoftSpokenSettings settings, std::array<u8, 2> session = {2, 2}) {
  auto [first, second] = net::make_memory_channels();
  const std::array<net::Channel*, 2> channels{first.get(), second.get()};
  Ends ends;
  run_pair(
      [&](int rank) {
        net::Channel& channel = *channels[rank];
        crypto::Prg prg({7, static_cast<u64>(rank)});
        SoftSpokenPair transfers(rank, settings, id(1), prg);
        transfers.write_request(channel);
        RcotPair pair = transfers.finish(channel, id(session[rank]));
        ends.setup[rank] = channel.traffic();
        ends.delta[rank] = pair.sender->delta();
        ends.q[rank].resize(kCount);
        ends.t[rank].resize(kCount);
        pair.receiver->step(0, ends.t[rank].data(), kCount);
        pair.sender->step(1, ends.q[rank].data(), kCount);
      },
      [&] {
        for (net::Channel* channel : channels) channel->close();
      });
  return ends;
}

bool correlated(const Ends& ends, int sender) {
  for (i64 i = 0; i < kCount; ++i) {
    const crypto::Block q = ends.q[sender][i], t = ends.t[1 - sender][i];
    if (!(t == (q ^ crypto::select(crypto::low_bit(t), ends.delta[sender]))) ||
        crypto::low_bit(q) != 0)
      return false;
  }
  return true;
}

TEST(SoftSpokenPair, BothDirectionsAreCorrelatedAndCostWhatTheMeterSays) {
  for (int k : {1, 2, 3, 4, 7, 8, 10}) {
    for (bool malicious : {false, true}) {
      SCOPED_TRACE(::testing::Message() << "degree " << k << ", malicious " << malicious);
      const Ends ends = run({k, malicious});
      CostMeter meter(softspoken_cost(k, malicious));
      cost_softspoken_pair(meter, {k, malicious}, 0);
      for (int rank : {0, 1}) {
        EXPECT_TRUE(correlated(ends, rank)) << rank;
        EXPECT_EQ(crypto::low_bit(ends.delta[rank]), 1);
        EXPECT_EQ(ends.setup[rank].sent, meter.bytes[rank]);
        EXPECT_EQ(ends.setup[rank].received, meter.bytes[1 - rank]);
        EXPECT_EQ(ends.setup[rank].depth, meter.depth[rank]);
      }
      EXPECT_FALSE(ends.delta[0] == ends.delta[1]);
    }
  }
}

TEST(SoftSpokenPair, KeysOfTheSecondDirectionBelongToTheirSession) {
  const Ends ends = run({4, false}, {2, 3});
  EXPECT_TRUE(correlated(ends, 1)) << "base OTs have an id of their own";
  EXPECT_FALSE(correlated(ends, 0));
  const TamperedRun checked = run_tampered_pair(0, {}, [](int rank, net::Channel& channel) {
    crypto::Prg prg({7, static_cast<u64>(rank)});
    SoftSpokenPair transfers(rank, {4, true}, id(1), prg);
    transfers.write_request(channel);
    transfers.finish(channel, id(static_cast<u8>(rank)));
  });
  EXPECT_EQ(checked.ending, (std::array{Ending::disconnected, Ending::aborted}));
}

}  // namespace
}  // namespace privml::ot::testing
