// SPDX-License-Identifier: Apache-2.0
#include "net/tcp.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "base/error.h"
#include "net/shaped.h"
#include "net/testing/channels.h"

namespace privml::net {
namespace {

using namespace std::chrono_literals;
using testing::kPatience;
using testing::pattern;

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
  void frame(u32 length, const std::vector<u8>& payload) const {
    const u64 header[2] = {length, 0};
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
  std::vector<u8> payload(sizeof(u64), 0xff);  // the clock
  payload.push_back(7);
  peer.frame(u32{1} << 31 | 1, payload);
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
}  // namespace privml::net
