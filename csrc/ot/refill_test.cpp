// SPDX-License-Identifier: Apache-2.0
#include "ot/refill.h"

#include <gtest/gtest.h>

#include <future>

#include "base/error.h"
#include "net/testing/tampering.h"
#include "ot/cost.h"
#include "ot/testing/parties.h"

namespace privml::ot {
namespace {

using net::testing::Flip;
using net::testing::TamperingChannel;
using testing::run_pair;
using testing::test_config;

// Both parties with a refill each; body(party) runs on two threads. A refill that fails closes its
// party's other channel.
class Refilled {
 public:
  explicit Refilled(OtConfig config = test_config("softspoken"), i64 most = kRefillStock)
      : config_(std::move(config)), most_(most) {
    std::tie(main[0], main[1]) = net::make_memory_channels();
    std::tie(fill[0], fill[1]) = net::make_memory_channels();
  }

  void run(const std::function<void(Party&)>& body) {
    run_pair(
        [&](int rank) {
          const auto resources = make_party_resources(*fill[rank], rank, config_);
          Party& base = resources->party();
          main[rank]->set_depth(fill[rank]->traffic().depth);
          Refill refill(
              *fill[rank], base.sender, base.receiver,
              [&](const std::exception_ptr& error) {
                main[rank]->close();
                failure[rank].set_value(error);
              },
              most_);
          Party party{rank,      *main[rank],           base.sender, base.receiver, base.prg,
                      base.hash, base.correlation_bits, base.ledger, &refill};
          body(party);
          party.channel.flush();
          // The peer may still need what this refill is sending.
          u8 byte = 0;
          party.channel.write({&byte, 1});
          party.channel.read({&byte, 1});
        },
        [&] {
          for (auto& pair : {std::ref(main), std::ref(fill)}) {
            for (auto& channel : pair.get()) channel->close();
          }
        });
  }

  std::array<std::unique_ptr<net::Channel>, 2> main, fill;
  std::array<std::promise<std::exception_ptr>, 2> failure;

 private:
  OtConfig config_;
  i64 most_;
};

TEST(Refill, CorrelationsMatchAndComeInOrder) {
  constexpr i64 kSmallStock = 1;  // so that the refill pauses after each extension
  for (const std::string provider : {"softspoken", "ideal"}) {
    for (const i64 most : {kSmallStock, kRefillStock}) {
      const std::vector<i64> draws{1, 5000, 128, 70'000, 3, 300'000, 1};
      std::array<std::vector<crypto::Block>, 2> sent, received;
      std::array<crypto::Block, 2> delta;
      Refilled(test_config(provider), most).run([&](Party& party) {
        const int rank = party.rank;
        announce(party, rank == 0 ? 200'000 : 1000, rank == 0 ? 1000 : 200'000);
        delta[rank] = party.sender.delta();
        for (const i64 count : draws) {
          std::vector<crypto::Block> a(count), b(count);
          reserve(party, count, count);
          draw_as_sender(party, a.data(), count);
          draw_as_receiver(party, b.data(), count);
          sent[rank].insert(sent[rank].end(), a.begin(), a.end());
          received[rank].insert(received[rank].end(), b.begin(), b.end());
        }
      });
      for (int rank : {0, 1}) {
        i64 ones = 0;
        for (size_t i = 0; i < sent[rank].size(); ++i) {
          const bool choice = received[1 - rank][i].lo & 1;
          ones += choice;
          ASSERT_EQ(received[1 - rank][i], sent[rank][i] ^ crypto::select(choice, delta[rank]))
              << i;
        }
        const double share = static_cast<double>(ones) / static_cast<double>(sent[rank].size());
        EXPECT_NEAR(share, 0.5, 0.01);
      }
    }
  }
}

// Announcements, reservations and messages between them in a fixed order.
struct Step {
  char kind;          // a: announce, r: reserve and draw, m: a message from party 0, e: exchange
  i64 first, second;  // by the sender's rank
};
const std::vector<Step> kSteps{{'a', 100'000, 3000}, {'m', 0, 0},      {'r', 4000, 0},
                               {'e', 0, 0},          {'r', 0, 2000},   {'m', 0, 0},
                               {'r', 90'000, 5000},  {'a', 0, 60'000}, {'m', 0, 0},
                               {'r', 7, 70'000},     {'e', 0, 0},      {'r', 20'000, 20'000}};

void play(Party& party, const Step& step) {
  const i64 mine = party.rank == 0 ? step.first : step.second;
  const i64 theirs = party.rank == 0 ? step.second : step.first;
  std::vector<u8> bytes(100);
  if (step.kind == 'a') announce(party, mine, theirs);
  if (step.kind == 'r') {
    std::vector<crypto::Block> drawn(std::max(mine, theirs));
    reserve(party, mine, theirs);
    draw_as_sender(party, drawn.data(), mine);
    draw_as_receiver(party, drawn.data(), theirs);
  }
  if (step.kind == 'e' || (step.kind == 'm' && party.rank == 0)) party.channel.write(bytes);
  if (step.kind == 'e' || (step.kind == 'm' && party.rank == 1)) party.channel.read(bytes);
  party.channel.flush();
}

void play(CostMeter& meter, const Step& step) {
  if (step.kind == 'a') meter.announce(step.first, step.second);
  if (step.kind == 'r') {
    meter.reserve(step.first, step.second);
    meter.draw(0, step.first);
    meter.draw(1, step.second);
  }
  if (step.kind == 'e') meter.exchange(100, 100);
  if (step.kind == 'm') meter.message(0, 100);
}

TEST(Refill, DepthBytesAndCorrelationsEqualTheMeter) {
  for (const OtConfig& config : {test_config("softspoken", 4), test_config("softspoken", 1)}) {
    for (const i64 most : {i64{1}, kRefillStock}) {
      CostMeter meter(rcot_cost(config));
      cost_party_resources(meter);
      const auto setup = meter.depth;
      meter.bytes = {};
      meter.begin_refill();
      std::vector<CostMeter> expected;
      for (const Step& step : kSteps) {
        play(meter, step);
        expected.push_back(meter);
      }
      EXPECT_GT(meter.preprocess_depth[1], 0);
      EXPECT_EQ(setup, (std::array<i64, 2>{4, 4}));
      Refilled(config, most).run([&](Party& party) {
        const int rank = party.rank;
        for (size_t i = 0; i < kSteps.size(); ++i) {
          SCOPED_TRACE(::testing::Message() << "step " << i << ", party " << rank);
          play(party, kSteps[i]);
          const net::Traffic now = party.channel.traffic();
          EXPECT_EQ(now.depth, expected[i].depth[rank]);
          EXPECT_EQ(party.ledger.phases[1].depth, expected[i].preprocess_depth[rank]);
          EXPECT_EQ(now.sent, expected[i].bytes[rank] - expected[i].preprocess_bytes[rank]);
          EXPECT_EQ(party.ledger.cots_as_sender, expected[i].cots[rank]);
          EXPECT_EQ(party.ledger.cots_as_receiver, expected[i].cots[1 - rank]);
        }
        EXPECT_EQ(party.refill->count().sent, meter.preprocess_bytes[rank]);
        EXPECT_EQ(party.refill->count().received, meter.preprocess_bytes[1 - rank]);
      });
    }
  }
}

TEST(Refill, ALostConnectionReachesWhoWaits) {
  Refilled session;
  EXPECT_THROW(session.run([&](Party& party) {
    if (party.rank == 1) session.fill[1]->close();
    reserve(party, 1000, 1000);
  }),
               PeerDisconnected);
}

// What the refill of party 1 writes passes a TamperingChannel.
const net::testing::TamperingChannel& tampering(Refilled& session,
                                                std::optional<net::testing::Flip> flip) {
  auto channel = std::make_unique<net::testing::TamperingChannel>(std::move(session.fill[1]), flip);
  const net::testing::TamperingChannel& observed = *channel;
  session.fill[1] = std::move(channel);
  return observed;
}

// A bit of the second extension, of which nobody has drawn anything yet.
net::testing::Flip flip_in_second_extension(const OtConfig& config, i64 first) {
  Refilled session(config);
  const net::testing::TamperingChannel& observed = tampering(session, {});
  session.run(
      [&](Party& party) { party.rank == 0 ? reserve(party, first, 0) : reserve(party, 0, first); });
  return {std::ssize(observed.message_bytes()) - 1, 8 * (observed.message_bytes().back() + 1000)};
}

TEST(Refill, ACaughtPeerEndsEverythingThoughMuchIsInStock) {
  constexpr i64 kFirst = 100'000;
  const OtConfig config = test_config("softspoken", 4, "malicious");
  Refilled session(config);
  const net::testing::TamperingChannel& observed =
      tampering(session, flip_in_second_extension(config, kFirst));
  EXPECT_THROW(session.run([&](Party& party) {
    const bool sends = party.rank == 0;
    sends ? reserve(party, kFirst, 0) : reserve(party, 0, kFirst);
    sends ? announce(party, 2 * kFirst, 0) : announce(party, 0, 2 * kFirst);
    u8 byte = 0;
    if (!sends) return party.channel.read({&byte, 1});  // the channel of the protocols ends, too
    const std::exception_ptr error = session.failure[0].get_future().get();
    EXPECT_THROW(std::rethrow_exception(error), SecurityAbort);
    EXPECT_THROW(party.refill->available(), SecurityAbort);
    EXPECT_THROW(party.refill->announce({1, 1}, {}), SecurityAbort);
    EXPECT_THROW(party.refill->wait_for({1, 0}), SecurityAbort);
    std::array<crypto::Block, 10> drawn;
    EXPECT_THROW(party.refill->take(OtRole::sender, drawn.data(), 10), SecurityAbort);
    EXPECT_THROW(draw_as_sender(party, drawn.data(), 10), SecurityAbort);
    EXPECT_THROW(party.channel.read({&byte, 1}), PeerDisconnected);
  }),
               PeerDisconnected);
  EXPECT_TRUE(observed.flipped());
}

TEST(Refill, WhatIsInStockOutlivesALostConnection) {
  Refilled session;
  session.run([&](Party& party) {
    std::array<crypto::Block, 10> drawn;
    reserve(party, 1000, 1000);
    u8 byte = 0;
    party.channel.write({&byte, 1});
    party.channel.read({&byte, 1});  // both have theirs
    session.fill[party.rank]->close();
    announce(party, 100'000, 100'000);
    draw_as_sender(party, drawn.data(), 10);
    EXPECT_THROW(reserve(party, 50'000, 0), PeerDisconnected);
  });
}

TEST(Refill, APeerThatMakesNothingEndsAtTheDeadline) {
  Refilled session;
  for (auto& channel : session.fill) channel->set_deadline(std::chrono::milliseconds{300});
  EXPECT_THROW(session.run([&](Party& party) {
    if (party.rank == 0) return reserve(party, 1000, 0);
    u8 byte;
    party.channel.read({&byte, 1});  // not in step with the other party
  }),
               PeerDisconnected);
}

TEST(Refill, EndsWhileItIsBusyPausedOrIdle) {
  for (const i64 announced : {i64{0}, i64{1000}, i64{8} << 20}) {
    for (const i64 most : {i64{1}, kRefillStock}) {
      Refilled(test_config("softspoken"), most).run([&](Party& party) {
        if (announced > 0) announce(party, announced, announced);
      });
    }
  }
}

TEST(Refill, NothingIsHandedOutThatWasNotAnnounced) {
  Refilled(test_config("ideal")).run([](Party& party) {
    EXPECT_THROW(party.refill->wait_for({1, 0}), InvalidArgument);
    announce(party, 10, 10);
    EXPECT_EQ(party.refill->available(), (Refill::Counts{10, 10}));
    std::array<crypto::Block, 10> drawn;
    draw_as_sender(party, drawn.data(), 4);
    EXPECT_EQ(party.refill->available(), (Refill::Counts{6, 10}));
    EXPECT_THROW(party.refill->take(OtRole::sender, drawn.data(), 7), InvalidArgument);
  });
}

}  // namespace
}  // namespace privml::ot
