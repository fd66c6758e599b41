// SPDX-License-Identifier: Apache-2.0
#include "ot/base_ot.h"

#include <gtest/gtest.h>
#include <sodium.h>

#include <set>

#include "base/error.h"
#include "ot/ggm.h"
#include "ot/testing/parties.h"

namespace privml::ot::testing {
namespace {

SessionId session_id(u8 value) {
  SessionId id;
  id.fill(value);
  return id;
}

struct Keys {
  WipedVector<std::array<crypto::Block, 2>> pairs;
  WipedVector<crypto::Block> chosen;
};

Keys run_base_ot(const WipedVector<u8>& choices, const SessionId& sender_session,
                 const SessionId& receiver_session) {
  auto [first, second] = net::make_memory_channels();
  Keys keys;
  run_pair(
      [&, &sender = *first, &receiver = *second](int rank) {
        crypto::Prg prg(crypto::os_random_block());
        if (rank == 0) {
          keys.pairs = base_ot_send(sender, sender_session, 0, std::ssize(choices), prg);
          sender.flush();
        } else {
          BaseOtReceiver base(receiver_session, 0, choices);
          base.write_request(receiver, prg);
          keys.chosen = base.read_reply(receiver);
        }
      },
      [&] {
        first->close();
        second->close();
      });
  return keys;
}

TEST(BaseOt, ReceiverGetsTheChosenKeyOnly) {
  WipedVector<u8> choices;
  for (int i = 0; i < 40; ++i) choices.push_back((0x5a3c96f1 >> (i % 32)) & 1);
  const Keys keys = run_base_ot(choices, session_id(1), session_id(1));
  std::set<std::pair<u64, u64>> distinct;
  for (size_t i = 0; i < choices.size(); ++i) {
    EXPECT_EQ(keys.chosen[i], keys.pairs[i][choices[i]]) << i;
    EXPECT_FALSE(keys.chosen[i] == keys.pairs[i][1 - choices[i]]) << i;
    for (crypto::Block key : keys.pairs[i]) distinct.insert({key.lo, key.hi});
  }
  EXPECT_EQ(distinct.size(), 2 * choices.size());
}

TEST(BaseOt, KeysBelongToTheirSession) {
  const Keys keys = run_base_ot({0, 1, 1}, session_id(1), session_id(2));
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(keys.chosen[i] == keys.pairs[i][0]);
    EXPECT_FALSE(keys.chosen[i] == keys.pairs[i][1]);
  }
}

TEST(BaseOt, RequestsDoNotShowTheChoice) {
  // Both points of a request are canonical encodings, whatever the choice.
  for (u8 choice : {u8{0}, u8{1}}) {
    auto [channel, peer] = net::make_memory_channels();
    crypto::Prg prg(crypto::os_random_block());
    BaseOtReceiver base(session_id(3), 0, {choice});
    base.write_request(*channel, prg);
    channel->flush();
    std::array<u8, 64> request;
    peer->read(request);
    EXPECT_EQ(crypto_core_ristretto255_is_valid_point(request.data()), 1);
    EXPECT_EQ(crypto_core_ristretto255_is_valid_point(request.data() + 32), 1);
  }
}

TEST(BaseOt, InvalidPointsAreRefused) {
  for (u8 filler : {u8{0}, u8{0xff}}) {  // the identity; no encoding at all
    auto [channel, peer] = net::make_memory_channels();
    crypto::Prg prg(crypto::os_random_block());
    BaseOtReceiver base(session_id(3), 0, {1});
    base.write_request(*channel, prg);
    std::array<u8, 32> reply;
    reply.fill(filler);
    peer->write(reply);
    peer->flush();
    EXPECT_THROW(base.read_reply(*channel), ProtocolError);
  }
  auto [channel, peer] = net::make_memory_channels();
  crypto::Prg prg(crypto::os_random_block());
  std::array<u8, 64> request;
  request.fill(0xff);
  peer->write(request);
  peer->flush();
  EXPECT_THROW(base_ot_send(*channel, session_id(3), 0, 1, prg), ProtocolError);
}

TEST(GgmTree, PuncturedTreeHasAllLeavesButOne) {
  for (int depth = 1; depth <= 8; ++depth) {
    const GgmTree tree = ggm_expand(crypto::os_random_block(), depth);
    ASSERT_EQ(std::ssize(tree.leaves), i64{1} << depth);
    ASSERT_EQ(std::ssize(tree.sums), depth);
    for (u64 hole = 0; hole < tree.leaves.size(); ++hole) {
      std::vector<crypto::Block> sums(depth);
      for (int level = 0; level < depth; ++level) {
        sums[level] = tree.sums[level][~(hole >> (depth - 1 - level)) & 1];
      }
      const WipedVector<crypto::Block> known = ggm_puncture(sums, hole);
      ASSERT_EQ(known.size(), tree.leaves.size());
      EXPECT_EQ(known[0], crypto::kZeroBlock);
      for (u64 y = 1; y < known.size(); ++y) {
        ASSERT_EQ(known[y], tree.leaves[y ^ hole]) << depth << " " << hole << " " << y;
      }
    }
  }
}

}  // namespace
}  // namespace privml::ot::testing
