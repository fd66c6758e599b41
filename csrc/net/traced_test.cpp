// SPDX-License-Identifier: Apache-2.0
#include "net/traced.h"

#include <gtest/gtest.h>

#include "net/memory.h"

namespace privml::net {
namespace {

TEST(TracedChannel, KeepsOrderAndLengthsOfMessages) {
  auto [first, second] = make_memory_channels();
  TracedChannel channel(std::move(first), true), other(std::move(second));
  std::vector<u8> got(3);
  channel.write(std::vector<u8>{1, 2});
  channel.write(std::vector<u8>{3});
  channel.flush();
  other.read(got);
  other.write({got.data(), 2});
  other.flush();
  channel.write(std::vector<u8>{4});  // leaves with the read
  channel.read({got.data(), 1});
  channel.read({got.data(), 1});
  channel.write(std::vector<u8>{5});
  channel.set_depth(7);
  channel.flush();
  EXPECT_EQ(channel.passages(),
            (std::vector<Passage>{{true, 3}, {true, 1}, {false, 1}, {false, 1}, {true, 1}}));
  EXPECT_EQ(channel.sent(), (std::vector<u8>{1, 2, 3, 4, 5}));
  EXPECT_EQ(other.passages(), (std::vector<Passage>{{false, 3}, {true, 2}}));
  EXPECT_TRUE(other.sent().empty());
  EXPECT_EQ(channel.traffic().sent, 5);
}

}  // namespace
}  // namespace privml::net
