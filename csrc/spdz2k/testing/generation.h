// SPDX-License-Identifier: Apache-2.0
// For tests: the makers of correlations at both parties, with the ideal supply for what they draw.
#pragma once

#include "spdz2k/shares/cost.h"
#include "spdz2k/testing/tampered_run.h"

namespace privml::spdz2k::testing {

inline ot::OtConfig ideal_ot() { return ot::testing::test_config("ideal"); }
inline ot::OtConfig malicious_ot() {
  return ot::testing::test_config("softspoken", 4, "malicious");
}

struct GenerationRecord {
  Both<net::Traffic> traffic;  // since the session's start
  Both<ot::Ledger> ledger;
  Both<Demand> drawn;
};

template <class R>
using GenerationBody = std::function<void(Session<R>&, ot::Party&)>;

template <class R>
void run_one_party(net::Channel& channel, int rank, const ot::OtConfig& ot,
                   const GenerationBody<R>& body, GenerationRecord* record) {
  const auto resources = ot::make_party_resources(channel, rank, ot);
  ot::Party& party = resources->party();
  const auto supply = make_ideal_supply<R>(kSeed, rank);
  Session<R> session(rank, channel, party.prg, ideal_key<R>(kSeed, rank));
  session.set_supply(*supply);
  const net::Traffic before = channel.traffic();
  body(session, party);
  channel.flush();
  if (record == nullptr) return;
  const net::Traffic after = channel.traffic();
  record->traffic[rank] = {after.sent - before.sent, after.received - before.received,
                           after.depth - before.depth};
  record->ledger[rank] = party.ledger;
  record->drawn[rank] = supply->drawn();
}

template <class R>
GenerationRecord run_generation(const ot::OtConfig& ot, const GenerationBody<R>& body) {
  auto [first, second] = net::make_memory_channels();
  Both<std::unique_ptr<net::Channel>> channels{std::move(first), std::move(second)};
  GenerationRecord record;
  ot::testing::run_pair(
      [&](int rank) { run_one_party<R>(*channels[rank], rank, ot, body, &record); },
      [&] {
        for (auto& channel : channels) channel->close();
      });
  return record;
}

// Bytes, depth, correlated OTs and draws equal those of the meter exactly.
inline void expect_generation_cost(const GenerationRecord& record, const CostMeter& meter) {
  for (int rank : {0, 1}) {
    SCOPED_TRACE(::testing::Message() << "party " << rank);
    EXPECT_EQ(record.traffic[rank].sent, meter.bytes[rank]);
    EXPECT_EQ(record.traffic[rank].received, meter.bytes[1 - rank]);
    EXPECT_EQ(record.traffic[rank].depth, meter.depth[rank]);
    EXPECT_EQ(record.ledger[rank].cots_as_sender, meter.cots[rank]);
    EXPECT_EQ(record.ledger[rank].cots_as_receiver, meter.cots[1 - rank]);
    EXPECT_TRUE(record.drawn[rank] == meter.demand);
  }
}

// How the honest party's run ends when one bit of the other's messages is flipped; messages are
// counted from the set-up of the OT layer on.
template <class R>
TamperedRun run_tampered_generation(int dishonest, std::optional<net::testing::Flip> flip,
                                    const GenerationBody<R>& body) {
  const auto party = [&](int rank, net::Channel& channel) {
    run_one_party<R>(channel, rank, ideal_ot(), body, nullptr);
  };
  return seen_by_the_honest(dishonest, ot::testing::run_tampered_pair(dishonest, flip, party));
}

struct FlipCounts {
  i64 runs = 0, aborts = 0;
};

// Flips the first bit of each message of party `dishonest`, and those a third, a fifth, ... into it
// for `parts` 3, 5, ...: the honest party aborts, or expect_right() checks what was made.
template <class R>
FlipCounts flip_every_message(int dishonest, std::initializer_list<i64> parts,
                              const GenerationBody<R>& body,
                              const std::function<void()>& expect_right) {
  const TamperedRun clean = run_tampered_generation<R>(dishonest, {}, body);
  EXPECT_TRUE(clean.completed);
  FlipCounts counts;
  for (i64 message = 0; message < std::ssize(clean.message_bytes); ++message) {
    const i64 bits = 8 * clean.message_bytes[message];
    std::vector<i64> places{0};
    for (const i64 part : parts) places.push_back(bits / part);
    for (const i64 bit : places) {
      SCOPED_TRACE(::testing::Message() << "party " << dishonest << ", message " << message
                                        << ", bit " << bit << " of " << bits);
      const TamperedRun run =
          run_tampered_generation<R>(dishonest, net::testing::Flip{message, bit}, body);
      EXPECT_TRUE(run.flipped);
      EXPECT_NE(run.aborted, run.completed);
      ++counts.runs;
      counts.aborts += run.aborted;
      if (run.completed) expect_right();
    }
  }
  return counts;
}

}  // namespace privml::spdz2k::testing
