// SPDX-License-Identifier: Apache-2.0
// A connected TCP socket as a Transport, plain or under TLS.
#pragma once

#include <atomic>
#include <string>

#include "net/framed.h"
#include "net/tls.h"

namespace privml::net {

// What a peer may send while it does not read what this party sends: more than any protocol does.
inline constexpr size_t kMostBuffered = size_t{1} << 30;

class TcpTransport final : public Transport {
 public:
  // Owns the connected `socket`. With `identity` under TLS, whose handshake is part of the first
  // send or receive: it throws IdentityError when the peer is not the one expected. send() throws
  // ProtocolError when the peer sends more than `most_buffered` bytes instead of reading.
  explicit TcpTransport(int socket, const TlsIdentity* identity = nullptr,
                        TlsRole role = TlsRole::connecting, size_t most_buffered = kMostBuffered);
  ~TcpTransport() override;
  TcpTransport(const TcpTransport&) = delete;
  TcpTransport& operator=(const TcpTransport&) = delete;

  void send(Bytes header, Bytes payload, std::chrono::milliseconds deadline) override;
  void receive(MutableBytes bytes, std::chrono::milliseconds deadline) override;
  void close() override;
  std::string peer_name() const override { return stream_->peer_name(); }
  CertifiedNames names() const override { return stream_->names(); }
  bool peer_closed() const override;
  std::string peer_address() const override { return peer_; }

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  void prepare(TimePoint end, std::chrono::milliseconds deadline);
  bool fill_buffer(size_t at_most);
  size_t take_buffered(MutableBytes bytes);
  void wait_for(short events, TimePoint end, std::chrono::milliseconds deadline);
  [[noreturn]] void throw_disconnected() const;

  int socket_;
  std::unique_ptr<SocketStream> stream_;
  bool ready_ = false;
  std::string peer_;
  size_t most_buffered_;
  std::atomic<bool> closed_{false};
  AlignedVector<u8> buffered_;  // received ahead of what was asked for
  size_t buffered_taken_ = 0;
};

// host:port, with brackets around IPv6 addresses.
std::string with_port(const std::string& host, const std::string& port);

// Milliseconds until `end` for poll(), at least 0.
int remaining_milliseconds(std::chrono::steady_clock::time_point end);

}  // namespace privml::net
