// SPDX-License-Identifier: Apache-2.0
// For tests: the makers of correlations at both parties, with the ideal supply for what they draw.
#pragma once

#include "spdz2k/generation.h"
#include "spdz2k/testing.h"

namespace privml::spdz2k::testing {

inline OtConfig ideal_ot() { return privml::testing::test_config("ideal"); }
inline OtConfig malicious_ot() {
  return privml::testing::test_config("softspoken", 4, "malicious");
}

struct GenerationRecord {
  Both<Traffic> traffic;  // since the session's start
  Both<Ledger> ledger;
  Both<Demand> drawn;
};

template <class R>
using GenerationBody = std::function<void(Session<R>&, Party&)>;

template <class R>
void run_one_party(Channel& channel, int rank, const OtConfig& ot, const GenerationBody<R>& body,
                   GenerationRecord* record) {
  const auto resources = make_party_resources(channel, rank, ot);
  Party& party = resources->party();
  const auto supply = make_ideal_supply<R>(kSeed, rank);
  Session<R> session(rank, channel, party.prg, ideal_key<R>(kSeed, rank));
  session.set_supply(*supply);
  const Traffic before = channel.traffic();
  body(session, party);
  channel.flush();
  if (record == nullptr) return;
  const Traffic after = channel.traffic();
  record->traffic[rank] = {after.sent - before.sent, after.received - before.received,
                           after.depth - before.depth};
  record->ledger[rank] = party.ledger;
  record->drawn[rank] = supply->drawn();
}

template <class R>
GenerationRecord run_generation(const OtConfig& ot, const GenerationBody<R>& body) {
  auto [first, second] = make_memory_channels();
  Both<std::unique_ptr<Channel>> channels{std::move(first), std::move(second)};
  GenerationRecord record;
  privml::testing::run_pair(
      [&](int rank) { run_one_party<R>(*channels[rank], rank, ot, body, &record); },
      [&] {
        for (auto& channel : channels) channel->close();
      });
  return record;
}

// Bytes, depth, correlated OTs and draws equal those of the meter exactly.
inline void expect_generation_cost(const GenerationRecord& record, const GenerationMeter& meter) {
  for (int rank : {0, 1}) {
    SCOPED_TRACE(::testing::Message() << "party " << rank);
    EXPECT_EQ(record.traffic[rank].sent, meter.wire.bytes[rank]);
    EXPECT_EQ(record.traffic[rank].received, meter.wire.bytes[1 - rank]);
    EXPECT_EQ(record.traffic[rank].depth, meter.wire.depth[rank]);
    EXPECT_EQ(record.ledger[rank].cots_as_sender, meter.wire.cots[rank]);
    EXPECT_EQ(record.ledger[rank].cots_as_receiver, meter.wire.cots[1 - rank]);
    EXPECT_TRUE(record.drawn[rank] == meter.session.demand);
  }
}

// How the honest party's run ends when one bit of the other's messages is flipped; messages are
// counted from the set-up of the OT layer on.
template <class R>
TamperedRun run_tampered_generation(int dishonest, std::optional<privml::testing::Flip> flip,
                                    const GenerationBody<R>& body) {
  auto [first, second] = make_memory_channels();
  Both<std::unique_ptr<Channel>> channels{std::move(first), std::move(second)};
  auto wrapped =
      std::make_unique<privml::testing::TamperingChannel>(std::move(channels[dishonest]), flip);
  const privml::testing::TamperingChannel& observed = *wrapped;
  channels[dishonest] = std::move(wrapped);
  TamperedRun run;
  privml::testing::run_pair(
      [&](int rank) {
        try {
          run_one_party<R>(*channels[rank], rank, ideal_ot(), body, nullptr);
          if (rank != dishonest) run.completed = true;
        } catch (const SecurityAbort&) {
          if (rank != dishonest) run.aborted = true;
          channels[rank]->close();
        } catch (const PeerDisconnected&) {
          channels[rank]->close();
        }
      },
      [&] {
        for (auto& channel : channels) channel->close();
      });
  run.flipped = observed.flipped();
  run.message_bytes = observed.message_bytes();
  return run;
}

}  // namespace privml::spdz2k::testing
