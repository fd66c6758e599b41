// SPDX-License-Identifier: Apache-2.0
#include "net/testing/tampering.h"

#include <gtest/gtest.h>

#include "net/memory.h"

namespace privml::net::testing {
namespace {

// Party 0 writes two messages in pieces, party 1 answers in between; returns what party 1 got.
std::vector<u8> sent_through(std::optional<Flip> flip, std::vector<i64>* sizes, bool* flipped) {
  auto [first, second] = make_memory_channels();
  TamperingChannel channel(std::move(first), flip);
  std::vector<u8> got(9);
  u8 answer = 0;
  channel.write(std::vector<u8>{0, 0});
  channel.write({});
  channel.write(std::vector<u8>{0, 0, 0});
  channel.flush();
  second->read({got.data(), 5});
  second->write({&answer, 1});
  second->flush();
  channel.read({});
  channel.read({&answer, 1});
  channel.write(std::vector<u8>{0, 0, 0, 0});
  channel.flush();
  second->read({got.data() + 5, 4});
  if (sizes != nullptr) *sizes = channel.message_bytes();
  if (flipped != nullptr) *flipped = channel.flipped();
  return got;
}

TEST(TamperingChannel, MeasuresMessagesAndLeavesThemAlone) {
  std::vector<i64> sizes;
  bool flipped = true;
  EXPECT_EQ(sent_through({}, &sizes, &flipped), std::vector<u8>(9));
  EXPECT_EQ(sizes, (std::vector<i64>{5, 4}));
  EXPECT_FALSE(flipped);
}

TEST(TamperingChannel, FlipsEveryBitOfEveryMessage) {
  const std::vector<i64> sizes{5, 4};
  for (i64 message = 0; message < 2; ++message) {
    for (i64 bit = 0; bit < 8 * sizes[message]; ++bit) {
      bool flipped = false;
      std::vector<u8> expected(9);
      expected[5 * message + bit / 8] = static_cast<u8>(1 << bit % 8);
      EXPECT_EQ(sent_through(Flip{message, bit}, nullptr, &flipped), expected);
      EXPECT_TRUE(flipped);
    }
  }
}

TEST(TamperingChannel, SaysWhenNothingWasThereToFlip) {
  bool flipped = true;
  EXPECT_EQ(sent_through(Flip{1, 32}, nullptr, &flipped), std::vector<u8>(9));
  EXPECT_FALSE(flipped);
}

}  // namespace
}  // namespace privml::net::testing
