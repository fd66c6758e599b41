// SPDX-License-Identifier: Apache-2.0
// Silent OT with small parameters: the correlation over several iterations, the order of steps, and
// malicious security: whatever bit of whatever message is flipped, the receiver aborts.
#include "ot/silent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/testing/sanitized.h"
#include "net/memory.h"
#include "net/testing/tampering.h"
#include "ot/silent_check.h"
#include "ot/testing/tampered.h"

namespace privml::ot::testing {
namespace {

using Blocks = std::vector<crypto::Block>;

// Far too small to be secure.
SilentParameters small(bool malicious) { return {{500, 24, 6}, 13, 1, malicious}; }

bool all_zero(const Blocks& blocks) {
  return std::ranges::all_of(blocks, [](crypto::Block b) { return b == crypto::kZeroBlock; });
}

// A sender and a receiver with first correlations from a dealer, on one thread.
struct Pair {
  explicit Pair(const SilentParameters& parameters,
                std::optional<net::testing::Flip> of_sender = {},
                std::optional<net::testing::Flip> of_receiver = {}, u64 seed = 1)
      : q(parameters.usable()), t(parameters.usable()) {
    auto [first, second] = net::make_memory_channels();
    sender_channel = std::make_unique<net::testing::TamperingChannel>(std::move(first), of_sender);
    receiver_channel =
        std::make_unique<net::testing::TamperingChannel>(std::move(second), of_receiver);
    crypto::Prg prg({seed, 5});
    delta = prg.next_block();
    delta.lo |= 1;
    const i64 spent = parameters.spent();
    WipedVector<crypto::Block> mine(spent), theirs(spent);
    prg.fill_blocks(mine.data(), spent);
    for (i64 i = 0; i < spent; ++i) {
      const u8 choice = crypto::low_bit(mine[i]);
      mine[i].lo &= ~u64{1};
      theirs[i] = mine[i] ^ crypto::select(choice, delta);
    }
    const SilentKeys keys{{3, 1}, {4, 1}};
    sender = make_silent_sender(*sender_channel, parameters, keys, delta, crypto::Prg({seed, 6}),
                                std::move(mine));
    receiver = make_silent_receiver(*receiver_channel, parameters, keys, crypto::Prg({seed, 7}),
                                    std::move(theirs));
  }

  void extend() {
    for (int s = 0; s <= sender->messages(); ++s) {
      const bool sending = extension_role(s) == OtRole::sender;
      Blocks& out = sending ? q : t;
      (sending ? sender : receiver)->step(s, out.data(), std::ssize(out));
      (sending ? sender_channel : receiver_channel)->flush();
    }
  }

  bool correlated() const {
    for (size_t i = 0; i < q.size(); ++i)
      if (!((q[i] ^ crypto::select(crypto::low_bit(t[i]), delta)) == t[i]) ||
          crypto::low_bit(q[i]) != 0)
        return false;
    return true;
  }

  std::unique_ptr<net::testing::TamperingChannel> sender_channel, receiver_channel;
  std::unique_ptr<Rcot> sender, receiver;
  crypto::Block delta;
  Blocks q, t;
};

class Silent : public ::testing::TestWithParam<bool> {};

TEST_P(Silent, CorrelatedOverManyIterationsWithFreshRandomChoices) {
  const SilentParameters parameters = small(GetParam());
  Pair pair(parameters);
  Blocks before;
  i64 ones = 0, total = 0;
  for (int iteration = 0; iteration < 40; ++iteration) {
    pair.extend();
    ASSERT_TRUE(pair.correlated()) << iteration;
    for (size_t i = 0; i < pair.t.size(); ++i) {
      ones += crypto::low_bit(pair.t[i]);
      if (iteration > 0) {
        ASSERT_FALSE(pair.q[i] == before[i]);
      }
      before.resize(pair.q.size());
      before[i] = pair.q[i];
    }
    total += std::ssize(pair.t);
  }
  const double n = static_cast<double>(total);
  EXPECT_NEAR(static_cast<double>(ones), n / 2, 6 * std::sqrt(n) / 2);
  EXPECT_EQ(pair.sender->delta(), pair.delta);
  EXPECT_THROW(pair.receiver->delta(), InvalidArgument);
}

TEST_P(Silent, BytesAreThoseOfTheCost) {
  const SilentParameters parameters = small(GetParam());
  const RcotCost cost = silent_cost(parameters);
  Pair pair(parameters);
  EXPECT_EQ(pair.sender->messages(), cost.messages);
  EXPECT_EQ(pair.sender->tile(), cost.tile);
  EXPECT_EQ(pair.receiver->granularity(), cost.granularity);
  pair.extend();
  std::vector<i64> odd, even;
  for (int m = 0; m < cost.messages; ++m) {
    const i64 bytes = cost.message_bytes(m, cost.tile);
    if (bytes > 0) (m % 2 == 0 ? even : odd).push_back(bytes);
    EXPECT_EQ(cost.message_bytes(m, 0), 0);
  }
  EXPECT_EQ(pair.receiver_channel->message_bytes(), even);
  EXPECT_EQ(pair.sender_channel->message_bytes(), odd);
}

TEST_P(Silent, AFunctionOfTheSeeds) {
  Pair first(small(GetParam())), same(small(GetParam())), other(small(GetParam()), {}, {}, 2);
  for (Pair* pair : {&first, &same, &other}) pair->extend();
  EXPECT_EQ(first.t, same.t);
  EXPECT_NE(first.t, other.t);
}

TEST_P(Silent, StepsHaveAnOrderAndCorrelationsAreSpentOnce) {
  SilentParameters parameters = small(GetParam());
  Pair pair(parameters);
  const i64 count = parameters.usable();
  EXPECT_THROW(pair.receiver->step(2, pair.t.data(), count), InvalidArgument);
  EXPECT_THROW(pair.sender->step(1, pair.q.data(), count - 1), InvalidArgument);
  EXPECT_THROW(pair.sender->step(1, pair.q.data(), 2 * count), InvalidArgument);
  pair.sender->step(1, pair.q.data(), 0);
  pair.extend();
  EXPECT_TRUE(pair.correlated());
  parameters.kept_trees = 0;
  Pair once(parameters);
  once.extend();
  EXPECT_TRUE(once.correlated());
  EXPECT_THROW(once.sender->step(1, once.q.data(), parameters.usable()), InvalidArgument);
  EXPECT_THROW(once.receiver->step(0, once.t.data(), parameters.usable()), InvalidArgument);
}

TEST_P(Silent, NeedsAllItsFirstCorrelationsAndAnOddOffset) {
  const SilentParameters parameters = small(GetParam());
  auto [first, second] = net::make_memory_channels();
  const SilentKeys keys{};
  const auto bases = [](i64 count) {
    return WipedVector<crypto::Block>(count, crypto::kZeroBlock);
  };
  EXPECT_THROW(make_silent_receiver(*first, parameters, keys, crypto::Prg({}),
                                    bases(parameters.spent() - 1)),
               InvalidArgument);
  EXPECT_THROW(make_silent_sender(*first, parameters, keys, {2, 0}, crypto::Prg({}),
                                  bases(parameters.spent())),
               InvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Securities, Silent, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "malicious" : "semi_honest"; });

// Extends until the flip's iteration, which must fail.
void expect_abort(Pair& pair, int good_iterations) {
  for (int i = 0; i < good_iterations; ++i) {
    pair.extend();
    ASSERT_TRUE(pair.correlated());
  }
  EXPECT_THROW(pair.extend(), SecurityAbort);
  EXPECT_TRUE(pair.sender_channel->flipped() || pair.receiver_channel->flipped());
  // Nothing is left of the extension, and there is no second attempt.
  EXPECT_TRUE(all_zero(pair.t));
  EXPECT_THROW(pair.receiver->step(0, pair.t.data(), std::ssize(pair.t)), SecurityAbort);
  u8 byte;
  EXPECT_THROW(pair.sender_channel->read({&byte, 1}), PeerDisconnected);
}

// Under sanitizers a part of the bits: the step is odd, so every place in a byte comes up.
constexpr i64 kBitStep = privml::testing::kSanitized ? 37 : 1;
constexpr i64 kMessageStep = privml::testing::kSanitized ? 3 : 1;

TEST(SilentTampering, EveryBitOfEveryMessage) {
  const SilentParameters parameters = small(true);
  Pair honest(parameters);
  honest.extend();
  const std::vector<i64> sent = honest.sender_channel->message_bytes();
  const std::vector<i64> received = honest.receiver_channel->message_bytes();
  EXPECT_EQ(sent, (std::vector<i64>{24 * 6 * 16, 32}));
  EXPECT_EQ(received, (std::vector<i64>{32}));
  for (i64 message = 0; message < 2; ++message) {
    for (i64 bit = 0; bit < 8 * sent[message]; bit += kBitStep) {
      SCOPED_TRACE(bit);
      Pair pair(parameters, net::testing::Flip{message, bit});
      expect_abort(pair, 0);
    }
  }
  for (i64 bit = 0; bit < 8 * received[0]; bit += kBitStep) {
    SCOPED_TRACE(bit);
    Pair pair(parameters, {}, net::testing::Flip{0, bit});
    expect_abort(pair, 0);
  }
}

TEST(SilentTampering, LaterIterationsAreChecked) {
  // The sender's digest and its next trees leave without a read in between: one message.
  for (const net::testing::Flip flip :
       {net::testing::Flip{1, 8 * 32 + 200}, net::testing::Flip{2, 200}}) {
    Pair of_sender(small(true), flip);
    expect_abort(of_sender, 1);
  }
  Pair of_receiver(small(true), {}, net::testing::Flip{2, 200});
  expect_abort(of_receiver, 2);
}

// Whole sessions: coin toss, base OTs, the small iteration, a large one.
TEST(SilentTampering, EveryMessageOfASession) {
  const OtConfig config = test_config("silent", 0, "malicious");
  const auto body = [](Party& party) {
    party.rank == 0 ? reserve(party, 1, 0) : reserve(party, 0, 1);
  };
  for (int tampered : {0, 1}) {
    const TamperedRun honest = run_tampered(config, tampered, {}, body);
    EXPECT_EQ(honest.ending, (std::array{Ending::completed, Ending::completed}));
    ASSERT_GE(honest.message_bytes.size(), 7u);
    for (i64 message = 0; message < std::ssize(honest.message_bytes); message += kMessageStep) {
      const i64 bits = 8 * honest.message_bytes[message];
      const i64 bit = tampered == 0 ? bits / 3 : bits - 1;
      const TamperedRun run =
          run_tampered(config, tampered, net::testing::Flip{message, bit}, body);
      EXPECT_TRUE(run.flipped) << message << " " << bit;
      EXPECT_TRUE(run.detected()) << message << " " << bit;
    }
  }
}

TEST(SilentTampering, WithoutTheCheckAFlipIsAWrongResult) {
  Pair pair(small(false), net::testing::Flip{0, 77});
  pair.extend();
  EXPECT_FALSE(pair.correlated());
}

TEST(TreeHash, IsTheInnerProductWithItsCoefficients) {
  constexpr int kDepth = 7;
  constexpr i64 kLeaves = 1 << kDepth, kTrees = 3;
  const crypto::Block challenge{11, 12};
  TreeHash hash(challenge, kDepth);
  Blocks leaves(kTrees * kLeaves);
  crypto::Prg({13, 14}).fill_blocks(leaves.data(), std::ssize(leaves));
  crypto::Block expected{};
  for (i64 tree = 0; tree < kTrees; ++tree) {
    hash.add(leaves.data() + tree * kLeaves);
    for (i64 j = 0; j < kLeaves; ++j) {
      // The coefficient of leaf j of this tree, once from a unit vector and once from add_unit().
      TreeHash unit(challenge, kDepth), place(challenge, kDepth);
      Blocks zero(kLeaves), one(kLeaves);
      one[j] = {1, 0};
      for (i64 before = 0; before < tree; ++before) unit.add(zero.data());
      unit.add(one.data());
      crypto::Block skipped{};
      for (i64 before = 0; before < tree; ++before) {
        place.add_unit(0);
        skipped = place.value();
      }
      place.add_unit(static_cast<u64>(j));
      ASSERT_EQ(place.value() ^ skipped, unit.value());
      expected ^= crypto::gf128_multiply(unit.value(), leaves[tree * kLeaves + j]);
    }
  }
  EXPECT_EQ(hash.value(), expected);
}

TEST(TreeHash, CoefficientsArePowers) {
  const TreeHash hash({1, 9}, 6);
  for (u64 j = 1; j < 64; ++j) {
    EXPECT_EQ(hash.coefficient(j),
              crypto::gf128_multiply(hash.coefficient(j - 1), hash.coefficient(0)));
  }
}

TEST(TreeHash, PackingAddsUpWithPowersOfX) {
  Blocks blocks(128);
  blocks[0] = {5, 0};
  EXPECT_EQ(pack_blocks(blocks.data()), (crypto::Block{5, 0}));
  blocks[3] = {1, 0};
  EXPECT_EQ(pack_blocks(blocks.data()), (crypto::Block{5 ^ 8, 0}));
  blocks[3] = {};
  blocks[127] = {2, 0};  // X^128 = X^7 + X^2 + X + 1
  EXPECT_EQ(pack_blocks(blocks.data()), (crypto::Block{5 ^ 0x87, 0}));
}

}  // namespace
}  // namespace privml::ot::testing
