// SPDX-License-Identifier: Apache-2.0
#include "net/tcp_transport.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace privml::net {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

// Small reads fetch this much at once, which saves a system call for most frames; large ones go
// straight to where they belong.
constexpr size_t kReadAhead = size_t{8} << 10;
constexpr size_t kDrain = size_t{256} << 10;

std::string address_of_peer(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char host[NI_MAXHOST] = "?";
  char service[NI_MAXSERV] = "?";
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (getpeername(socket, generic, &size) == 0)
    getnameinfo(generic, size, host, sizeof host, service, sizeof service,
                NI_NUMERICHOST | NI_NUMERICSERV);
  return with_port(host, service);
}

void drop_front(Bytes (&parts)[2], size_t n) {
  for (Bytes& part : parts) {
    const size_t taken = std::min(n, part.size());
    part = part.subspan(taken);
    n -= taken;
  }
}

}  // namespace

std::string with_port(const std::string& host, const std::string& port) {
  const bool brackets = host.find(':') != std::string::npos;
  return (brackets ? "[" + host + "]" : host) + ":" + port;
}

int remaining_milliseconds(Clock::time_point end) {
  const auto left = std::chrono::ceil<Milliseconds>(end - Clock::now()).count();
  return static_cast<int>(std::clamp<i64>(left, 0, 1 << 30));
}

TcpTransport::TcpTransport(int socket, const TlsIdentity* identity, TlsRole role,
                           size_t most_buffered)
    : socket_(socket),
      stream_(identity == nullptr ? make_plain_stream(socket) : identity->stream(socket, role)),
      peer_(address_of_peer(socket)),
      most_buffered_(most_buffered) {
  const int on = 1;
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  fcntl(socket_, F_SETFL, fcntl(socket_, F_GETFL) | O_NONBLOCK);
}

TcpTransport::~TcpTransport() { ::close(socket_); }

void TcpTransport::send(Bytes header, Bytes payload, Milliseconds deadline) {
  Bytes parts[2] = {header, payload};
  auto end = Clock::now() + deadline;
  prepare(end, deadline);
  while (parts[0].size() + parts[1].size() > 0) {
    if (closed_) throw_disconnected();
    const i64 n = stream_->send_some(parts[0], parts[1]);
    if (n > 0) {
      drop_front(parts, static_cast<size_t>(n));
      end = Clock::now() + deadline;
    } else if (n == 0) {
      // The peer may be sending too and read only afterwards: what arrives meanwhile is buffered,
      // so neither waits for the other.
      if (fill_buffer(kDrain)) {
        end = Clock::now() + deadline;
      } else {
        wait_for(POLLIN | POLLOUT, end, deadline);
      }
    } else {
      throw_disconnected();
    }
  }
}

void TcpTransport::receive(MutableBytes bytes, Milliseconds deadline) {
  const auto end = Clock::now() + deadline;
  prepare(end, deadline);
  while (!bytes.empty()) {
    if (closed_) throw_disconnected();
    size_t n = take_buffered(bytes);
    if (n == 0 && bytes.size() >= kReadAhead) {
      const i64 received = stream_->receive_some(bytes);
      if (received < 0) throw_disconnected();
      n = static_cast<size_t>(received);
    } else if (n == 0 && fill_buffer(kReadAhead)) {
      continue;
    }
    if (n == 0) wait_for(POLLIN, end, deadline);
    bytes = bytes.subspan(n);
  }
}

void TcpTransport::close() {
  closed_ = true;
  shutdown(socket_, SHUT_RDWR);
}

bool TcpTransport::peer_closed() const {
  pollfd state{socket_, POLLRDHUP, 0};
  return closed_ || (poll(&state, 1, 0) > 0 && state.revents != 0);
}

void TcpTransport::prepare(TimePoint end, Milliseconds deadline) {
  while (!ready_) {
    if (closed_) throw_disconnected();
    const short events = stream_->prepare();
    ready_ = events == 0;
    if (!ready_) wait_for(events, end, deadline);
  }
}

// Whether something had arrived.
bool TcpTransport::fill_buffer(size_t at_most) {
  if (buffered_taken_ >= buffered_.size() - buffered_taken_) {
    buffered_.erase(buffered_.begin(),
                    buffered_.begin() + static_cast<std::ptrdiff_t>(buffered_taken_));
    buffered_taken_ = 0;
    if (buffered_.empty() && buffered_.capacity() > 4 * kDrain) buffered_ = {};
  }
  const size_t before = buffered_.size();
  if (before - buffered_taken_ > most_buffered_)
    throw ProtocolError("peer " + peer_ + " has sent " + std::to_string(most_buffered_) +
                        " bytes and reads nothing");
  buffered_.resize(before + at_most);
  const i64 n = stream_->receive_some({buffered_.data() + before, at_most});
  buffered_.resize(before + static_cast<size_t>(std::max<i64>(n, 0)));
  if (n < 0) throw_disconnected();
  return n > 0;
}

size_t TcpTransport::take_buffered(MutableBytes bytes) {
  const size_t n = std::min(bytes.size(), buffered_.size() - buffered_taken_);
  if (n > 0) std::memcpy(bytes.data(), buffered_.data() + buffered_taken_, n);
  buffered_taken_ += n;
  return n;
}

void TcpTransport::wait_for(short events, TimePoint end, Milliseconds deadline) {
  pollfd waiting{socket_, events, 0};
  if (poll(&waiting, 1, remaining_milliseconds(end)) == 0 && Clock::now() >= end)
    throw PeerDisconnected("no answer from peer " + peer_ + " within " + duration_text(deadline));
}

void TcpTransport::throw_disconnected() const {
  throw PeerDisconnected(closed_ ? "this side closed the connection to " + peer_
                                 : "peer " + peer_ + " closed the connection");
}

}  // namespace privml::net
