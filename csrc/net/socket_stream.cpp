// SPDX-License-Identifier: Apache-2.0
#include "net/socket_stream.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>

namespace privml::net {
namespace {

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

class PlainStream final : public SocketStream {
 public:
  explicit PlainStream(int socket) : socket_(socket) {}

  short prepare() override { return 0; }

  i64 send_some(Bytes header, Bytes payload) override {
    iovec parts[2] = {{const_cast<u8*>(header.data()), header.size()},
                      {const_cast<u8*>(payload.data()), payload.size()}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    return finish([&] { return sendmsg(socket_, &message, MSG_NOSIGNAL); }, 0);
  }

  i64 receive_some(MutableBytes bytes) override {
    return finish([&] { return recv(socket_, bytes.data(), bytes.size(), 0); }, -1);
  }

  std::string peer_name() const override { return {}; }

 private:
  // What the call moved; `nothing` if it moved nothing.
  template <class Call>
  static i64 finish(Call&& call, i64 nothing) {
    while (true) {
      const ssize_t n = call();
      if (n > 0) return n;
      if (n == 0) return nothing;
      if (would_block(errno)) return 0;
      if (errno != EINTR) return -1;
    }
  }

  int socket_;
};

}  // namespace

std::unique_ptr<SocketStream> make_plain_stream(int socket) {
  return std::make_unique<PlainStream>(socket);
}

}  // namespace privml::net
