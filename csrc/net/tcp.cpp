// SPDX-License-Identifier: Apache-2.0
#include "net/tcp.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "net/tcp_transport.h"

namespace privml::net {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

// The pause between attempts, and the longest that one may take: a host behind a firewall must not
// keep the others of the same name from their turn.
constexpr Milliseconds kPause{50};
constexpr Milliseconds kAttempt{3000};

std::string with_port(const std::string& host, int port) {
  return privml::net::with_port(host, std::to_string(port));
}

struct Addresses {
  addrinfo* first = nullptr;
  Addresses(const std::string& host, int port, bool passive) {
    expect(port >= 0 && port < 65536, "a TCP port lies in [0, 65535]");
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = passive ? AI_PASSIVE : 0;
    const int code = getaddrinfo(host.empty() ? nullptr : host.c_str(),
                                 std::to_string(port).c_str(), &hints, &first);
    if (code != 0)
      throw InvalidArgument("cannot resolve '" + with_port(host, port) +
                            "': " + gai_strerror(code));
  }
  ~Addresses() { freeaddrinfo(first); }
  Addresses(const Addresses&) = delete;
  Addresses& operator=(const Addresses&) = delete;
};

// A loopback connection to a port nobody listens on can meet itself, when the system picks that
// very port for this end.
bool connected_to_itself(int socket) {
  sockaddr_storage here{}, there{};
  socklen_t here_size = sizeof here, there_size = sizeof there;
  return getsockname(socket, reinterpret_cast<sockaddr*>(&here), &here_size) == 0 &&
         getpeername(socket, reinterpret_cast<sockaddr*>(&there), &there_size) == 0 &&
         here_size == there_size && std::memcmp(&here, &there, here_size) == 0;
}

// A connected socket or -1.
int try_connect(const addrinfo& address, Clock::time_point end) {
  const int s = socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                       address.ai_protocol);
  if (s < 0) return -1;
  int failed = connect(s, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
  if (failed == EINPROGRESS) {
    const auto attempt_end = std::min(end, Clock::now() + kAttempt);
    pollfd events{s, POLLOUT, 0};
    int ready = 0;
    do {
      ready = poll(&events, 1, remaining_milliseconds(attempt_end));
    } while (ready < 0 && errno == EINTR);
    socklen_t size = sizeof failed;
    if (ready <= 0 || getsockopt(s, SOL_SOCKET, SO_ERROR, &failed, &size) != 0) failed = ETIMEDOUT;
  }
  if (failed == 0 && !connected_to_itself(s)) return s;
  ::close(s);
  return -1;
}

std::unique_ptr<Channel> channel_over(int socket, const TlsIdentity* identity, TlsRole role) {
  return std::make_unique<FramedChannel>(std::make_unique<TcpTransport>(socket, identity, role));
}

const char* advice(int reason) {
  switch (reason) {
    case EADDRINUSE:
      return "; choose another port or stop the program that uses it";
    case EADDRNOTAVAIL:
      return "; choose an address of this machine";
    case EACCES:
      return "; choose a port above 1023";
    default:
      return "";
  }
}

}  // namespace

TcpListener::TcpListener(const std::string& host, int port) : socket_(-1), port_(port) {
  const Addresses addresses(host, port, true);
  int reason = 0;
  for (const addrinfo* a = addresses.first; a != nullptr && socket_ < 0; a = a->ai_next) {
    const int s =
        socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
    const int on = 1;
    if (s >= 0) setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (s >= 0 && bind(s, a->ai_addr, a->ai_addrlen) == 0 && listen(s, 64) == 0) {
      socket_ = s;
    } else {
      reason = errno;
      if (s >= 0) ::close(s);
    }
  }
  if (socket_ < 0)
    throw InvalidArgument("cannot listen on " + with_port(host, port) + ": " +
                          std::strerror(reason) + advice(reason));
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  getsockname(socket_, reinterpret_cast<sockaddr*>(&bound), &size);
  port_ = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                            : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
}

TcpListener::~TcpListener() { ::close(socket_); }

void TcpListener::close() { shutdown(socket_, SHUT_RDWR); }

std::unique_ptr<Channel> TcpListener::accept(Milliseconds deadline, const TlsIdentity* identity) {
  const auto end = Clock::now() + bounded(deadline);
  while (true) {
    const int s = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (s >= 0) return channel_over(s, identity, TlsRole::listening);
    switch (errno) {
      case EINVAL:  // shut down
        throw PeerDisconnected("the listener on port " + std::to_string(port_) + " was closed");
      case EMFILE:
      case ENFILE:
      case ENOBUFS:
      case ENOMEM:
        throw std::system_error(errno, std::generic_category(), "cannot accept a connection");
      default:  // nobody yet, or a caller who has left already
        break;
    }
    if (Clock::now() >= end)
      throw PeerDisconnected("nobody connected to port " + std::to_string(port_) + " within " +
                             duration_text(deadline));
    pollfd events{socket_, POLLIN, 0};
    poll(&events, 1, remaining_milliseconds(end));
  }
}

std::unique_ptr<Channel> connect_tcp(const std::string& host, int port, Milliseconds deadline,
                                     const std::function<void()>& on_wait,
                                     const TlsIdentity* identity) {
  const auto end = Clock::now() + bounded(deadline);
  bool waiting = false;
  while (true) {
    {
      const Addresses addresses(host, port, false);
      for (const addrinfo* a = addresses.first; a != nullptr; a = a->ai_next)
        if (const int s = try_connect(*a, end); s >= 0)
          return channel_over(s, identity, TlsRole::connecting);
    }
    if (Clock::now() >= end)
      throw PeerDisconnected("nobody answers at " + with_port(host, port) + " after " +
                             duration_text(deadline) + "; is the other party running?");
    if (!waiting && on_wait) on_wait();
    waiting = true;
    std::this_thread::sleep_for(
        std::min<Clock::duration>(kPause, std::max(end - Clock::now(), Clock::duration::zero())));
  }
}

}  // namespace privml::net
