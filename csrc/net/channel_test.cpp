// SPDX-License-Identifier: Apache-2.0
// What every kind of channel does.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "base/error.h"
#include "net/memory.h"
#include "net/recorded.h"
#include "net/shaped.h"
#include "net/tcp.h"
#include "net/testing/channels.h"

namespace privml::net {
namespace {

using namespace std::chrono_literals;
using testing::kPatience;
using testing::pattern;

ChannelPair tcp_pair() {
  TcpListener listener("127.0.0.1", 0);
  auto client = connect_tcp("127.0.0.1", listener.port(), kPatience);
  return {listener.accept(kPatience), std::move(client)};
}

class Channels : public ::testing::TestWithParam<bool> {
 protected:
  ChannelPair pair() { return GetParam() ? tcp_pair() : make_memory_channels(); }
};

TEST_P(Channels, BytesArriveInOrderAndAreCounted) {
  auto [a, b] = pair();
  const std::vector<size_t> sizes{1, 3, 0, 65535, 65536, 65537, 200000, 5};
  std::thread writer([&a = a, &sizes] {
    for (size_t s : sizes) a->write(pattern(s, static_cast<u8>(s)));
    a->flush();
  });
  i64 total = 0;
  for (size_t s : sizes) {
    std::vector<u8> got(s);
    b->read(got);
    EXPECT_EQ(got, pattern(s, static_cast<u8>(s)));
    total += static_cast<i64>(s);
  }
  writer.join();
  EXPECT_EQ(a->traffic().sent, total);
  EXPECT_EQ(b->traffic().received, total);
  EXPECT_EQ(b->traffic().depth, 1);
  EXPECT_EQ(a->traffic().depth, 0);
}

TEST_P(Channels, RandomSizesBothWays) {
  auto [a, b] = pair();
  const auto party = [](Channel& channel, u8 mine, u8 theirs) {
    std::mt19937 random(5);
    for (int i = 0; i < 60; ++i) {
      const size_t size = random() % (i % 3 == 0 ? 300'000 : 40), split = random() % (size + 1);
      const auto bytes = pattern(size, mine);
      channel.write(Bytes(bytes).first(split));
      channel.write(Bytes(bytes).subspan(split));
      std::vector<u8> got(size);
      channel.read(MutableBytes(got).first(size - split));
      channel.read(MutableBytes(got).subspan(size - split));
      ASSERT_EQ(got, pattern(size, theirs));
    }
  };
  std::thread peer([&, &b = b] { party(*b, 2, 1); });
  party(*a, 1, 2);
  peer.join();
  EXPECT_EQ(a->traffic().sent, b->traffic().received);
  EXPECT_EQ(a->traffic().received, b->traffic().sent);
}

TEST_P(Channels, LongMessagesStreamBeforeTheFlush) {
  auto [a, b] = pair();
  a->write(pattern(100'000, 0));
  std::vector<u8> got(65'536);
  b->read(got);
  EXPECT_EQ(got[65'535], pattern(100'000, 0)[65'535]);
  EXPECT_EQ(b->traffic().received, 65'536);
}

TEST_P(Channels, HeadersAreCountedApart) {
  auto [a, b] = pair();
  a->write(pattern(2 * 65'536 + 1, 0));
  a->flush();
  a->flush();
  EXPECT_EQ(a->traffic().framing, 3 * 16);
  std::vector<u8> got(2 * 65'536 + 1);
  b->read(got);
  EXPECT_EQ(b->traffic().framing, 3 * 16);
}

TEST_P(Channels, ClosedByThisSideSaysSo) {
  auto [a, b] = pair();
  b->write(pattern(1, 0));
  b->flush();
  a->close();
  u8 x;
  try {
    a->read({&x, 1});
    FAIL() << "read from a closed channel";
  } catch (const PeerDisconnected& error) {
    EXPECT_NE(std::string(error.what()).find("this side closed"), std::string::npos);
  }
  EXPECT_THROW(b->read({&x, 1}), PeerDisconnected);
}

TEST_P(Channels, DepthCountsHopsOnTheCriticalPath) {
  auto [a, b] = pair();
  std::thread peer([&b = b] {
    u8 x = 0;
    b->read({&x, 1});
    b->write({&x, 1});
    b->read({&x, 1});
    b->write({&x, 1});  // both write, then both read
    b->read({&x, 1});
  });
  u8 x = 1;
  a->write({&x, 1});
  a->read({&x, 1});
  a->write({&x, 1});
  a->write({&x, 1});
  a->read({&x, 1});
  peer.join();
  EXPECT_EQ(b->traffic().depth, 3);
  EXPECT_EQ(a->traffic().depth, 4);
}

TEST_P(Channels, DepthClockIsSetAfterWhatWasWrittenHasLeft) {
  auto [a, b] = pair();
  u8 x = 1;
  a->write({&x, 1});
  a->set_depth(7);
  a->write({&x, 1});
  a->flush();
  b->read({&x, 1});
  EXPECT_EQ(b->traffic().depth, 1);
  b->read({&x, 1});
  EXPECT_EQ(b->traffic().depth, 8);
  EXPECT_EQ(a->traffic().depth, 7);
}

TEST_P(Channels, BothMayWriteMegabytesBeforeReading) {
  auto [a, b] = pair();
  const auto exchange = [](Channel& channel, u8 mine, u8 theirs) {
    channel.write(pattern(20'000'000, mine));
    std::vector<u8> got(20'000'000);
    channel.read(got);
    EXPECT_EQ(got, pattern(20'000'000, theirs));
  };
  std::thread peer([&, &b = b] { exchange(*b, 2, 1); });
  exchange(*a, 1, 2);
  peer.join();
}

TEST_P(Channels, ReadEndsAtTheDeadline) {
  auto [a, b] = pair();
  a->set_deadline(30ms);
  u8 x;
  try {
    a->read({&x, 1});
    FAIL() << "read what nobody sent";
  } catch (const PeerDisconnected& error) {
    EXPECT_NE(std::string(error.what()).find("within 30 ms"), std::string::npos);
  }
}

TEST_P(Channels, ADeadlineMayBeEndless) {
  auto [a, b] = pair();
  a->set_deadline(std::chrono::milliseconds::max());
  b->write(pattern(1, 9));
  b->flush();
  u8 x = 0;
  a->read({&x, 1});
  EXPECT_EQ(x, 9);
}

TEST_P(Channels, ReadEndsWhenThePeerCloses) {
  auto [a, b] = pair();
  b->write(pattern(10, 0));
  b.reset();
  std::vector<u8> got(11);
  EXPECT_THROW(a->read(got), PeerDisconnected);
}

TEST_P(Channels, APeerThatHasClosedIsKnown) {
  auto [a, b] = pair();
  a->write(pattern(10, 1));
  a->flush();
  std::vector<u8> got(5);
  b->read(got);
  EXPECT_FALSE(b->peer_closed());
  a->close();
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!b->peer_closed() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(b->peer_closed());
  b->read(got);  // what it sent before is still there
  EXPECT_TRUE(a->peer_closed());
}

TEST_P(Channels, CloseWakesAReader) {
  auto [a, b] = pair();
  std::thread closer([&a = a] {
    std::this_thread::sleep_for(20ms);
    a->close();
  });
  u8 x;
  EXPECT_THROW(a->read({&x, 1}), PeerDisconnected);
  closer.join();
}

TEST_P(Channels, ShapedChannelsAddTheDelay) {
  auto [a, b] = pair();
  a = make_shaped(std::move(a), 20ms, 0);
  b = make_shaped(std::move(b), 20ms, 0);
  std::thread peer([&b = b] {
    u8 x;
    b->read({&x, 1});
    b->write({&x, 1});
    b->flush();
  });
  const auto start = std::chrono::steady_clock::now();
  u8 x = 1;
  a->write({&x, 1});
  a->read({&x, 1});
  EXPECT_GE(std::chrono::steady_clock::now() - start, 40ms);
  EXPECT_EQ(a->traffic().depth, 2);
  peer.join();
}

TEST_P(Channels, ShapedChannelsLimitTheBandwidth) {
  auto [a, b] = pair();
  b = make_shaped(std::move(b), 0ms, 8e6);              // a megabyte a second
  const auto start = std::chrono::steady_clock::now();  // before the bytes set out
  std::thread writer([&a = a] {
    a->write(pattern(50'000, 0));
    a->flush();
  });
  std::vector<u8> got(50'000);
  b->read(got);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 50ms);
  writer.join();
}

TEST_P(Channels, RecordedChannelsHashEachDirection) {
  auto [first, second] = pair();
  RecordedChannel a(std::move(first)), b(std::move(second));
  const auto empty = a.sent_hash();
  a.write(pattern(100, 3));
  a.flush();
  std::vector<u8> got(100);
  b.read(got);
  EXPECT_EQ(a.sent_hash(), b.received_hash());
  EXPECT_NE(a.sent_hash(), empty);
  EXPECT_EQ(a.received_hash(), empty);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Channels, ::testing::Values(false, true),
                         [](const auto& info) { return info.param ? "tcp" : "memory"; });

}  // namespace
}  // namespace privml::net
