// SPDX-License-Identifier: Apache-2.0
#include "net/tagged.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/error.h"
#include "net/framed.h"
#include "net/memory.h"
#include "net/shaped.h"

namespace privml::net {
namespace {

using namespace std::chrono_literals;

struct End {
  std::unique_ptr<Channel> channel;
  std::shared_ptr<Account> account;
  Tagged& tags() const { return *tagged(channel.get()); }
  void begin(u64 tag, const std::string& line) const {
    account->add(line);
    tags().set_tag(tag);
  }
};

std::pair<End, End> tagged_pair() {
  auto [a, b] = make_memory_channels();
  std::pair<End, End> ends;
  ends.first = End{std::move(a), std::make_shared<Account>(0, 1)};
  ends.second = End{std::move(b), std::make_shared<Account>(1, 0)};
  ends.first.tags().set_account(ends.first.account, true);
  ends.second.tags().set_account(ends.second.account, true);
  return ends;
}

void send(Channel& channel, u8 value) {
  channel.write({&value, 1});
  channel.flush();
}

u8 receive(Channel& channel) {
  u8 value = 0;
  channel.read({&value, 1});
  return value;
}

// Whether a read ends with ProgramsDiffer, and what the peer has told then.
std::string differs_with(Channel& channel) {
  try {
    receive(channel);
  } catch (const ProgramsDiffer& error) {
    return error.theirs;
  }
  return "nothing";
}

TEST(Tagged, FramesOfOneTagPass) {
  const auto [a, b] = tagged_pair();
  for (u64 tag : {u64{0}, u64{7}, ~u64{0}}) {
    a.begin(tag, "step");
    b.begin(tag, "step");
    send(*a.channel, 3);
    EXPECT_EQ(receive(*b.channel), 3);
  }
}

TEST(Tagged, WhatIsQueuedLeavesUnderItsOwnTag) {
  const auto [a, b] = tagged_pair();
  a.begin(1, "first");
  const u8 value = 5;
  a.channel->write({&value, 1});
  a.begin(2, "second");
  b.begin(1, "first");
  EXPECT_EQ(receive(*b.channel), 5);
}

TEST(Tagged, BothEndsHearWhatTheOtherComputes) {
  const auto [a, b] = tagged_pair();
  a.begin(1, "an addition");
  b.begin(2, "a product");
  send(*a.channel, 3);
  send(*b.channel, 4);
  std::string report;
  std::thread peer([&, &b = b] { report = differs_with(*b.channel); });
  EXPECT_EQ(differs_with(*a.channel), "differs\na product\n");
  peer.join();
  EXPECT_EQ(report, "differs\nan addition\n");
}

TEST(Tagged, AReaderAloneHearsIt) {
  const auto [a, b] = tagged_pair();
  a.begin(1, "an addition");
  b.begin(2, "a product");
  send(*a.channel, 3);
  std::string report;
  std::thread peer([&, &b = b] { report = differs_with(*b.channel); });
  EXPECT_EQ(differs_with(*a.channel), "differs\na product\n");
  peer.join();
  EXPECT_EQ(report, "differs\nan addition\n");
}

TEST(Tagged, TheRestOfAFrameBelongsToItsTag) {
  const auto [a, b] = tagged_pair();
  a.begin(1, "first");
  b.begin(1, "first");
  const std::vector<u8> two{1, 2};
  a.channel->write(two);
  a.channel->flush();
  EXPECT_EQ(receive(*b.channel), 1);
  a.channel->close();
  b.begin(2, "second");
  EXPECT_EQ(differs_with(*b.channel), "");
}

TEST(Tagged, PartiesThatWaitForEachOtherHearWhy) {
  const auto [a, b] = tagged_pair();
  a.channel->set_deadline(200ms);
  b.channel->set_deadline(200ms);
  a.begin(1, "an addition");
  b.begin(2, "a product");
  std::string report;
  std::thread peer([&, &b = b] { report = differs_with(*b.channel); });
  EXPECT_EQ(differs_with(*a.channel), "stalled\na product\n");
  peer.join();
  EXPECT_EQ(report, "stalled\nan addition\n");
}

TEST(Tagged, APeerThatIsGoneIsGone) {
  auto [a, b] = tagged_pair();
  a.begin(1, "an addition");
  b.channel.reset();
  EXPECT_THROW(receive(*a.channel), PeerDisconnected);
}

TEST(Tagged, ACauseIsHeardAndAnswered) {
  const auto [a, b] = tagged_pair();
  a.begin(1, "step");
  b.begin(1, "step");
  std::string report;
  std::thread peer([&, &b = b] { report = differs_with(*b.channel); });
  a.tags().report("party 2 does something else", std::chrono::seconds{10});
  peer.join();
  EXPECT_EQ(report, "party 2 does something else\nstep\n");
}

TEST(Tagged, AnAccountIsRefusedWithoutTags) {
  auto [a, b] = make_memory_channels();
  tagged(a.get())->set_account(std::make_shared<Account>(0, 1), true);
  std::thread peer([&b = b] { EXPECT_THROW(receive(*b), ProtocolError); });
  EXPECT_THROW(tagged(a.get())->differ(), ProgramsDiffer);
  peer.join();
}

TEST(Tagged, OnlyShapedLinksCarryAClock) {
  auto [a, b] = make_memory_channels();
  send(*a, 1);
  EXPECT_EQ(a->traffic().framing, 16);
  auto shaped = make_shaped(std::move(b), 1us, 0);
  EXPECT_EQ(receive(*shaped), 1);
  send(*shaped, 2);
  EXPECT_EQ(shaped->traffic().framing, 16 + 24);
  EXPECT_EQ(receive(*a), 2);
}

TEST(Account, OldLinesGiveWay) {
  Account account(0, 1);
  for (int i = 0; i < 2000; ++i) account.add(std::to_string(i) + std::string(200, 'x'));
  const std::string text = account.text();
  EXPECT_LT(text.size(), size_t{61} << 10);
  EXPECT_NE(text.find("1999x"), std::string::npos);
  EXPECT_EQ(text.find("\n1000x"), std::string::npos);
  EXPECT_THROW(account.add(std::string(300, 'x')), InvalidArgument);
}

}  // namespace
}  // namespace privml::net
