// SPDX-License-Identifier: Apache-2.0
#include "net/tcp.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "base/error.h"
#include "net/framed.h"

namespace privml {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

int remaining_ms(Clock::time_point end) {
  const auto left = std::chrono::duration_cast<Milliseconds>(end - Clock::now()).count();
  return static_cast<int>(std::clamp<i64>(left, 0, 1 << 30));
}

std::string with_port(const std::string& host, int port) {
  return host + ":" + std::to_string(port);
}

std::string peer_name(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char host[NI_MAXHOST] = "?";
  char service[NI_MAXSERV] = "?";
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (getpeername(socket, generic, &size) == 0)
    getnameinfo(generic, size, host, sizeof host, service, sizeof service,
                NI_NUMERICHOST | NI_NUMERICSERV);
  return std::string(host) + ":" + service;
}

class TcpTransport final : public Transport {
 public:
  explicit TcpTransport(int socket) : socket_(socket), peer_(peer_name(socket)) {
    const int on = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    fcntl(socket_, F_SETFL, fcntl(socket_, F_GETFL) | O_NONBLOCK);
  }
  ~TcpTransport() override { ::close(socket_); }

  void send(Bytes header, Bytes payload, Milliseconds deadline) override {
    iovec parts[2] = {{const_cast<u8*>(header.data()), header.size()},
                      {const_cast<u8*>(payload.data()), payload.size()}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    auto end = Clock::now() + deadline;
    while (parts[0].iov_len + parts[1].iov_len > 0) {
      const ssize_t n = sendmsg(socket_, &message, MSG_NOSIGNAL);
      if (n >= 0) {
        drop_sent(parts, static_cast<size_t>(n));
        end = Clock::now() + deadline;
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        if (wait_writable(end, deadline) > 0) end = Clock::now() + deadline;
      } else if (errno != EINTR) {
        throw gone();
      }
    }
  }

  void receive(MutableBytes bytes, Milliseconds deadline) override {
    const auto end = Clock::now() + deadline;
    while (!bytes.empty()) {
      size_t n = take_aside(bytes);
      if (n == 0) n = receive_some(bytes);
      if (n == 0) wait(POLLIN, end, deadline);
      bytes = bytes.subspan(n);
    }
  }

  void close() override {
    closed_ = true;
    shutdown(socket_, SHUT_RDWR);
  }

 private:
  static void drop_sent(iovec* parts, size_t n) {
    for (int i = 0; i < 2; ++i) {
      const size_t taken = std::min(n, parts[i].iov_len);
      parts[i].iov_base = static_cast<u8*>(parts[i].iov_base) + taken;
      parts[i].iov_len -= taken;
      n -= taken;
    }
  }

  PeerDisconnected gone() const {
    return PeerDisconnected(closed_ ? "this side closed the connection to " + peer_
                                    : "peer " + peer_ + " closed the connection");
  }

  // 0 where nothing has arrived.
  size_t receive_some(MutableBytes bytes) {
    while (true) {
      const ssize_t n = recv(socket_, bytes.data(), bytes.size(), 0);
      if (n > 0) return static_cast<size_t>(n);
      if (n == 0) throw gone();
      if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
      if (errno != EINTR) throw gone();
    }
  }

  size_t take_aside(MutableBytes bytes) {
    const size_t n = std::min(bytes.size(), aside_.size() - aside_taken_);
    if (n == 0) return 0;
    std::memcpy(bytes.data(), aside_.data() + aside_taken_, n);
    aside_taken_ += n;
    if (aside_taken_ == aside_.size()) {
      aside_.clear();
      aside_taken_ = 0;
    }
    return n;
  }

  // Both parties may be sending: what arrives meanwhile is put aside, so neither waits for the
  // other. Returns how many bytes have arrived.
  size_t wait_writable(Clock::time_point end, Milliseconds deadline) {
    const short ready = wait(POLLIN | POLLOUT, end, deadline);
    if (closed_) throw gone();
    if (!(ready & POLLIN)) return 0;
    const size_t before = aside_.size();
    aside_.resize(before + (size_t{256} << 10));
    size_t n = 0;
    try {
      n = receive_some({aside_.data() + before, aside_.size() - before});
    } catch (...) {
      aside_.resize(before);
      throw;
    }
    aside_.resize(before + n);
    return n;
  }

  short wait(short events, Clock::time_point end, Milliseconds deadline) const {
    pollfd socket{socket_, events, 0};
    if (poll(&socket, 1, remaining_ms(end)) == 0 && Clock::now() >= end)
      throw PeerDisconnected("no answer from peer " + peer_ + " within " +
                             std::to_string(deadline.count()) + " ms");
    return socket.revents;
  }

  int socket_;
  std::string peer_;
  std::atomic<bool> closed_{false};
  std::vector<u8> aside_;
  size_t aside_taken_ = 0;
};

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

// A connected socket or -1.
int try_connect(const addrinfo& address, Clock::time_point end) {
  const int s = socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                       address.ai_protocol);
  if (s < 0) return -1;
  int failed = connect(s, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
  if (failed == EINPROGRESS) {
    pollfd events{s, POLLOUT, 0};
    socklen_t size = sizeof failed;
    if (poll(&events, 1, remaining_ms(end)) <= 0)
      failed = ETIMEDOUT;
    else
      getsockopt(s, SOL_SOCKET, SO_ERROR, &failed, &size);
  }
  if (failed == 0) return s;
  ::close(s);
  return -1;
}

}  // namespace

TcpListener::TcpListener(const std::string& host, int port) : socket_(-1), port_(port) {
  const Addresses addresses(host, port, true);
  int reason = 0;
  for (const addrinfo* a = addresses.first; a != nullptr && socket_ < 0; a = a->ai_next) {
    const int s = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
    if (s < 0) continue;
    const int on = 1;
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(s, a->ai_addr, a->ai_addrlen) == 0 && listen(s, 64) == 0) {
      socket_ = s;
    } else {
      reason = errno;
      ::close(s);
    }
  }
  if (socket_ < 0)
    throw InvalidArgument(
        "cannot listen on " + with_port(host, port) + ": " + std::strerror(reason) +
        (reason == EADDRINUSE ? "; choose another port or stop the program that uses it" : ""));
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  getsockname(socket_, reinterpret_cast<sockaddr*>(&bound), &size);
  port_ = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                            : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
  fcntl(socket_, F_SETFL, fcntl(socket_, F_GETFL) | O_NONBLOCK);
}

TcpListener::~TcpListener() { ::close(socket_); }

void TcpListener::close() { shutdown(socket_, SHUT_RDWR); }

std::unique_ptr<Channel> TcpListener::accept(Milliseconds deadline) {
  const auto end = Clock::now() + deadline;
  while (true) {
    const int s = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (s >= 0) return std::make_unique<FramedChannel>(std::make_unique<TcpTransport>(s));
    if (errno == EINVAL || errno == EBADF) throw PeerDisconnected("the listener was closed");
    if (Clock::now() >= end)
      throw PeerDisconnected("nobody connected to port " + std::to_string(port_) + " within " +
                             std::to_string(deadline.count()) + " ms");
    pollfd events{socket_, POLLIN, 0};
    poll(&events, 1, remaining_ms(end));
  }
}

std::unique_ptr<Channel> connect_tcp(const std::string& host, int port, Milliseconds deadline,
                                     const std::function<void()>& on_wait) {
  const auto end = Clock::now() + deadline;
  bool waiting = false;
  while (true) {
    {
      const Addresses addresses(host, port, false);
      for (const addrinfo* a = addresses.first; a != nullptr; a = a->ai_next)
        if (const int s = try_connect(*a, end); s >= 0)
          return std::make_unique<FramedChannel>(std::make_unique<TcpTransport>(s));
    }
    if (Clock::now() >= end)
      throw PeerDisconnected("nobody answers at " + with_port(host, port) + " after " +
                             std::to_string(deadline.count()) + " ms; is the other party running?");
    if (!waiting && on_wait) on_wait();
    waiting = true;
    std::this_thread::sleep_for(Milliseconds{50});
  }
}

}  // namespace privml
