// SPDX-License-Identifier: Apache-2.0
// Correlations that leave one session's pools and enter another's.
#include "ot/stored.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "ot/derive.h"
#include "ot/testing/parties.h"

namespace privml::ot::testing {
namespace {

using Blocks = std::vector<crypto::Block>;

// What one party keeps of a session.
struct Half {
  crypto::Block delta{};
  Blocks as_sender, as_receiver;
};

std::array<Half, 2> make_halves(i64 from0, i64 from1) {
  std::array<Half, 2> halves;
  run_session(test_config("softspoken"), [&](Party& party) {
    Half& half = halves[party.rank];
    half.as_sender.resize(party.rank == 0 ? from0 : from1);
    half.as_receiver.resize(party.rank == 0 ? from1 : from0);
    reserve(party, std::ssize(half.as_sender), std::ssize(half.as_receiver));
    half.delta = party.sender.delta();
    party.sender.take(half.as_sender.data(), std::ssize(half.as_sender));
    party.receiver.take(half.as_receiver.data(), std::ssize(half.as_receiver));
    EXPECT_EQ(party.ledger.cots_as_sender + party.ledger.cots_as_receiver, 0);
  });
  return halves;
}

OtConfig stored(const Half& half) {
  OtConfig config = test_config("softspoken");
  config.stored_offset = half.delta;
  return config;
}

// Both parties open a session on their halves, each with its own configuration.
std::array<Ledger, 2> run_stored(std::array<Half, 2> halves,
                                 const std::function<void(Party&)>& body) {
  auto [first, second] = net::make_memory_channels();
  std::array<std::unique_ptr<net::Channel>, 2> channels{std::move(first), std::move(second)};
  std::array<Ledger, 2> ledgers;
  run_pair(
      [&](int rank) {
        Half& half = halves[rank];
        const auto resources = make_party_resources(*channels[rank], rank, stored(half));
        Party& party = resources->party();
        party.sender.add(half.as_sender.data(), std::ssize(half.as_sender));
        party.receiver.add(half.as_receiver.data(), std::ssize(half.as_receiver));
        for (const crypto::Block& block : half.as_sender) EXPECT_EQ(block, crypto::kZeroBlock);
        for (const crypto::Block& block : half.as_receiver) EXPECT_EQ(block, crypto::kZeroBlock);
        body(party);
        channels[rank]->flush();
        ledgers[rank] = party.ledger;
      },
      [&] {
        for (auto& channel : channels) channel->close();
      });
  return ledgers;
}

TEST(Stored, CorrelationsHoldAfterTheMove) {
  const auto halves = make_halves(3001, 777);
  for (int sender : {0, 1}) {
    const Half& ours = halves[sender];
    const Half& theirs = halves[1 - sender];
    ASSERT_EQ(ours.as_sender.size(), theirs.as_receiver.size());
    for (size_t i = 0; i < ours.as_sender.size(); ++i) {
      ASSERT_EQ(
          ours.as_sender[i] ^ crypto::select(crypto::low_bit(theirs.as_receiver[i]), ours.delta),
          theirs.as_receiver[i]);
    }
  }
}

TEST(Stored, SessionDrawsThemInOrderAndMakesNone) {
  const auto halves = make_halves(1000, 500);
  std::array<Blocks, 2> sent, received;
  const auto ledgers = run_stored(halves, [&](Party& party) {
    const i64 mine = party.rank == 0 ? 1000 : 500, theirs = 1500 - mine;
    EXPECT_EQ(party.sender.available(), mine);
    EXPECT_EQ(party.sender.delta(), halves[party.rank].delta);
    EXPECT_THROW(party.receiver.delta(), InvalidArgument);
    sent[party.rank].resize(mine);
    received[party.rank].resize(theirs);
    reserve(party, mine, theirs);
    draw_as_sender(party, sent[party.rank].data(), mine);
    draw_as_receiver(party, received[party.rank].data(), theirs);
    crypto::Block more;
    EXPECT_THROW(draw_as_sender(party, &more, 1), InvalidArgument);
    EXPECT_THROW(draw_as_receiver(party, &more, 1), InvalidArgument);
  });
  for (int rank : {0, 1}) {
    EXPECT_TRUE(sent[rank] == halves[rank].as_sender);
    EXPECT_TRUE(received[rank] == halves[rank].as_receiver);
    const PhaseCount& made = ledgers[rank].phases[static_cast<int>(Phase::preprocess)];
    EXPECT_EQ(made.sent + made.received + made.depth, 0);
    const PhaseCount& setup = ledgers[rank].phases[static_cast<int>(Phase::setup)];
    EXPECT_EQ(setup.sent, 64);
    EXPECT_EQ(setup.received, 64);
    EXPECT_EQ(setup.depth, 2);
  }
}

TEST(Stored, TransfersWorkOnThem) {
  constexpr i64 kCount = 300;
  constexpr int kBits = 4;
  const auto halves = make_halves(kCount * kBits, 0);
  std::vector<u64> messages(kCount << kBits), learned(kCount);
  std::vector<u8> choices(kCount);
  for (size_t i = 0; i < messages.size(); ++i) messages[i] = i * 2654435761u % 251;
  for (i64 i = 0; i < kCount; ++i) choices[i] = static_cast<u8>(i * 7 % 16);
  run_stored(halves, [&](Party& party) {
    Blocks correlations(kCount * kBits);
    if (party.rank == 0) {
      choose_send(party, correlations.data(), kCount * kBits);
      one_of_n_send(party, correlations.data(), kBits, 8, messages);
    } else {
      std::vector<u8> bits(kCount * kBits);
      for (size_t i = 0; i < bits.size(); ++i) bits[i] = choices[i / kBits] >> i % kBits & 1;
      choose_receive(party, bits, correlations.data());
      one_of_n_receive(party, correlations.data(), choices, kBits, 8, learned);
    }
  });
  for (i64 i = 0; i < kCount; ++i) EXPECT_EQ(learned[i], messages[(i << kBits) + choices[i]]) << i;
}

TEST(Stored, WhatWasTakenIsNotDrawnAgain) {
  run_session(test_config("softspoken"), [](Party& party) {
    reserve(party, 600, 600);
    CotPool& pool = party.rank == 0 ? party.sender : party.receiver;
    std::set<std::pair<u64, u64>> seen;
    Blocks taken(400);
    pool.take(taken.data(), 400);
    for (crypto::Block block : taken) seen.insert({block.lo, block.hi});
    Blocks drawn(2000);
    party.rank == 0 ? draw_as_sender(party, drawn.data(), 2000)
                    : draw_as_receiver(party, drawn.data(), 2000);
    for (crypto::Block block : drawn) EXPECT_TRUE(seen.insert({block.lo, block.hi}).second);
  });
}

TEST(Stored, AddGoesBehindTheStockThroughMovesOfTheStore) {
  CotPool pool(make_stored_rcot(OtRole::receiver, crypto::kZeroBlock));
  u64 next = 0, expected = 0;
  for (i64 size : {5, 1000, 1, 0, 70, 4000}) {
    Blocks in(size);
    for (crypto::Block& block : in) block = {next++, 1};
    pool.add(in.data(), size);
    Blocks out(pool.available() / 2);
    pool.take(out.data(), std::ssize(out));
    for (crypto::Block block : out) EXPECT_EQ(block.lo, expected++);
  }
  Blocks rest(pool.available());
  pool.take(rest.data(), std::ssize(rest));
  for (crypto::Block block : rest) EXPECT_EQ(block.lo, expected++);
  EXPECT_EQ(expected, next);
  EXPECT_THROW(pool.add(rest.data(), -1), InvalidArgument);
}

TEST(Stored, RefusesOffsetsThatAreNone) {
  EXPECT_THROW(make_stored_rcot(OtRole::sender, {2, 7}), InvalidArgument);
}

}  // namespace
}  // namespace privml::ot::testing
