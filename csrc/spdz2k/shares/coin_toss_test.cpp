// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/shares/coin_toss.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "base/error.h"
#include "net/testing/tampering.h"
#include "ot/testing/parties.h"

namespace privml::spdz2k {
namespace {

using net::testing::Flip;
using net::testing::TamperingChannel;
using ot::testing::run_pair;

struct Tosses {
  std::array<std::vector<crypto::Block>, 2> coins;
  std::array<bool, 2> aborted{};
  bool flipped = false;
};

// Four tosses; one bit of what party 1 sends is flipped.
Tosses toss_coins(std::optional<net::testing::Flip> flip = {}) {
  auto [first, second] = net::make_memory_channels();
  net::testing::TamperingChannel tampered(std::move(second), flip);
  std::array<net::Channel*, 2> channels{first.get(), &tampered};
  Tosses tosses;
  ot::testing::run_pair(
      [&](int rank) {
        crypto::Prg prg({static_cast<u64>(rank), 3});
        CoinToss coins(rank, *channels[rank], prg);
        try {
          for (int i = 0; i < 4; ++i) tosses.coins[rank].push_back(coins.toss());
        } catch (const SecurityAbort&) {
          tosses.aborted[rank] = true;
          channels[rank]->close();
        } catch (const PeerDisconnected&) {
        }
      },
      [&] {
        for (net::Channel* channel : channels) channel->close();
      });
  tosses.flipped = tampered.flipped();
  return tosses;
}

TEST(CoinToss, BothGetTheSameFreshValues) {
  const Tosses tosses = toss_coins();
  ASSERT_EQ(tosses.coins[0].size(), 4U);
  std::set<std::pair<u64, u64>> seen;
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(tosses.coins[0][i] == tosses.coins[1][i]);
    seen.insert({tosses.coins[0][i].lo, tosses.coins[0][i].hi});
  }
  EXPECT_EQ(seen.size(), 4U);
}

// Every bit of the first commitment, of an opening and of the commitment beside it.
TEST(CoinToss, AnyOtherValueThanTheCommittedOneAborts) {
  const auto expect_abort = [](i64 message, i64 bit, std::size_t tosses_before) {
    SCOPED_TRACE(::testing::Message() << "message " << message << ", bit " << bit);
    const Tosses tosses = toss_coins(net::testing::Flip{message, bit});
    EXPECT_TRUE(tosses.flipped);
    EXPECT_TRUE(tosses.aborted[0]);
    EXPECT_EQ(tosses.coins[0].size(), tosses_before);
  };
  for (i64 bit = 0; bit < 256; bit += 7) {
    expect_abort(0, bit, 0);
    expect_abort(2, bit, 1);
    expect_abort(2, 256 + bit, 2);
  }
}

// One party's commitment cannot be opened by the other, nor under another number or label.
TEST(Commitment, BindsPartyNumberAndPurpose) {
  const std::array<u8, 5> message{1, 2, 3, 4, 5};
  const Commitment commitment = commit("purpose", 0, 7, message);
  EXPECT_TRUE(opens(commitment, "purpose", 0, 7, message));
  EXPECT_FALSE(opens(commitment, "purpose", 1, 7, message));
  EXPECT_FALSE(opens(commitment, "purpose", 0, 8, message));
  EXPECT_FALSE(opens(commitment, "purposes", 0, 7, message));
  EXPECT_FALSE(opens(commitment, "purpose", 0, 7, Bytes(message).first(4)));
}

}  // namespace
}  // namespace privml::spdz2k
