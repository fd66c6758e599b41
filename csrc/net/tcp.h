// SPDX-License-Identifier: Apache-2.0
// Channels over TCP (IPv4, IPv6 and host names).
#pragma once

#include <functional>

#include "net/channel.h"
#include "net/tls.h"

namespace privml::net {

// A listening socket. Port 0 takes any free port. Throws InvalidArgument naming the address when it
// cannot be bound (port in use, unknown host).
class TcpListener {
 public:
  TcpListener(const std::string& host, int port);
  ~TcpListener();
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;

  int port() const { return port_; }
  // The next connection, under TLS with `identity`, whose handshake is part of the channel's first
  // read or write, so that a silent caller keeps nobody waiting here; throws PeerDisconnected when
  // none comes within the deadline or after close().
  std::unique_ptr<Channel> accept(std::chrono::milliseconds deadline,
                                  const TlsIdentity* identity = nullptr);
  // Wakes a waiting accept().
  void close();

 private:
  int socket_;
  int port_;
};

// Connects to a listener, trying again until `deadline` has passed; `on_wait` is called once, when
// the first attempt found nobody there; TLS as in accept(). Throws PeerDisconnected naming the
// address.
std::unique_ptr<Channel> connect_tcp(const std::string& host, int port,
                                     std::chrono::milliseconds deadline,
                                     const std::function<void()>& on_wait = {},
                                     const TlsIdentity* identity = nullptr);

}  // namespace privml::net
