// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <random>
#include <thread>
#include <vector>

#include "base/error.h"
#include "net/memory.h"
#include "net/recorded.h"
#include "net/shaped.h"
#include "net/tcp.h"

namespace privml {
namespace {

using namespace std::chrono_literals;

// For what happens at once unless something is broken.
constexpr auto kPatience = 60s;

ChannelPair tcp_pair() {
  TcpListener listener("127.0.0.1", 0);
  auto client = connect_tcp("127.0.0.1", listener.port(), kPatience);
  return {listener.accept(kPatience), std::move(client)};
}

class Channels : public ::testing::TestWithParam<bool> {
 protected:
  ChannelPair pair() { return GetParam() ? tcp_pair() : make_memory_channels(); }
};

std::vector<u8> pattern(size_t size, u8 start) {
  std::vector<u8> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<u8>(start + i * 7 + i / 251);
  return bytes;
}

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

TEST(Tcp, PortInUseIsNamed) {
  TcpListener first("127.0.0.1", 0);
  try {
    TcpListener second("127.0.0.1", first.port());
    FAIL() << "bound twice";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find(std::to_string(first.port())), std::string::npos);
  }
}

// A port that nobody listens on, and that the system gives to no other program.
struct ReservedPort {
  ReservedPort() : socket(::socket(AF_INET, SOCK_STREAM, 0)) {
    const int on = 1;  // a listener may still take it
    EXPECT_EQ(setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(socket, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port = ntohs(address.sin_port);
  }
  ~ReservedPort() { close(socket); }
  ReservedPort(const ReservedPort&) = delete;
  ReservedPort& operator=(const ReservedPort&) = delete;
  int socket;
  int port = 0;
};

TEST(Tcp, NobodyThereEndsAtTheDeadline) {
  const ReservedPort nobody;
  EXPECT_THROW(connect_tcp("127.0.0.1", nobody.port, 120ms), PeerDisconnected);
}

TEST(Tcp, ConnectWaitsForALateListener) {
  const ReservedPort reserved;
  std::promise<void> waiting;
  std::unique_ptr<Channel> accepted;
  std::thread late([&] {
    waiting.get_future().wait();
    TcpListener listener("127.0.0.1", reserved.port);
    accepted = listener.accept(kPatience);
  });
  int said = 0;
  const auto channel = connect_tcp("127.0.0.1", reserved.port, kPatience, [&] {
    if (++said == 1) waiting.set_value();
  });
  late.join();
  EXPECT_NE(accepted, nullptr);
  EXPECT_EQ(said, 1);
}

TEST(Tcp, AcceptEndsAtTheDeadline) {
  TcpListener listener("127.0.0.1", 0);
  EXPECT_THROW(listener.accept(30ms), PeerDisconnected);
}

TEST(Tcp, GarbageIsAProtocolError) {
  TcpListener listener("127.0.0.1", 0);
  const int raw = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<u16>(listener.port()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(connect(raw, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const auto channel = listener.accept(kPatience);
  const std::string text = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  ASSERT_EQ(write(raw, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  u8 x;
  EXPECT_THROW(channel->read({&x, 1}), ProtocolError);
  close(raw);
}

// A peer that speaks frames by hand, so that it can stop wherever it likes.
struct RawPeer {
  explicit RawPeer(int port) : socket(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<u16>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ~RawPeer() { close(socket); }
  void frame(u32 length, const std::vector<u8>& payload, u64 sent_at = 0) const {
    const u64 header[2] = {length, sent_at};
    EXPECT_EQ(write(socket, header, sizeof header), static_cast<ssize_t>(sizeof header));
    EXPECT_EQ(write(socket, payload.data(), payload.size()), std::ssize(payload));
  }
  int socket;
};

TEST(Tcp, WriteEndsWhenThePeerNeverReads) {
  TcpListener listener("127.0.0.1", 0);
  const RawPeer peer(listener.port());
  const auto channel = listener.accept(kPatience);
  channel->set_deadline(50ms);
  EXPECT_THROW(channel->write(pattern(50'000'000, 0)), PeerDisconnected);
}

TEST(Tcp, HalfAFrameIsNeverRead) {
  TcpListener listener("127.0.0.1", 0);
  const RawPeer peer(listener.port());
  const auto channel = listener.accept(kPatience);
  channel->set_deadline(50ms);
  std::vector<u8> got(4);
  peer.frame(4, {1, 2, 3, 4});
  channel->read(got);
  EXPECT_EQ(got, (std::vector<u8>{1, 2, 3, 4}));
  peer.frame(100, pattern(10, 5));
  EXPECT_THROW(channel->read(got), PeerDisconnected);
  EXPECT_THROW(channel->read(got), PeerDisconnected);  // and the 10 bytes are not handed out
}

TEST(Tcp, PeerLeavesWithinAFrame) {
  TcpListener listener("127.0.0.1", 0);
  std::unique_ptr<Channel> channel;
  {
    const RawPeer peer(listener.port());
    channel = listener.accept(kPatience);
    peer.frame(100, pattern(10, 5));
  }
  u8 x;
  try {
    channel->read({&x, 1});
    FAIL() << "read half a frame";
  } catch (const PeerDisconnected& error) {
    EXPECT_NE(std::string(error.what()).find("closed the connection"), std::string::npos);
  }
}

TEST(Tcp, AFrameFromTheFutureDelaysNothing) {
  TcpListener listener("127.0.0.1", 0);
  const RawPeer peer(listener.port());
  const auto channel = make_shaped(listener.accept(kPatience), 1ms, 1e9);
  peer.frame(1, {7}, ~u64{0});
  u8 x = 0;
  channel->read({&x, 1});
  EXPECT_EQ(x, 7);
}

TEST(Tcp, CloseWakesAWaitingAccept) {
  TcpListener listener("127.0.0.1", 0);
  std::thread closer([&] {
    std::this_thread::sleep_for(20ms);
    listener.close();
  });
  EXPECT_THROW(listener.accept(kPatience), PeerDisconnected);
  closer.join();
}

TEST(Tcp, ImpossiblePortIsRefused) {
  EXPECT_THROW(connect_tcp("127.0.0.1", 70000, 10ms), InvalidArgument);
}

}  // namespace
}  // namespace privml
