// SPDX-License-Identifier: Apache-2.0
// A peer that sends without end and never reads.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <thread>
#include <vector>

#include "base/error.h"
#include "net/tcp_transport.h"

namespace privml::net {
namespace {

TEST(Flood, WhatAPeerSendsInsteadOfReadingIsBounded) {
  std::array<int, 2> ends;
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  std::thread peer([socket = ends[1]] {
    const std::vector<u8> bytes(65536);
    while (send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0) {
    }
  });
  {
    TcpTransport transport(ends[0], nullptr, TlsRole::connecting, size_t{1} << 20);
    const std::vector<u8> message(8 << 20);
    EXPECT_THROW(transport.send({}, message, std::chrono::seconds{20}), ProtocolError);
  }
  peer.join();
  ::close(ends[1]);
}

}  // namespace
}  // namespace privml::net
