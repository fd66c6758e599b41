// SPDX-License-Identifier: Apache-2.0
// Channels for emp-tool's protocols, and emp-tool's connections for privml's.
//
// emp-tool takes any type with send_data(pointer, bytes), recv_data(pointer, bytes) and flush() for
// its IO. Nothing here includes emp-tool except EmpIoChannel, which exists if its header is
// found.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>

#include "net/channel.h"
#include "net/framed.h"

#if __has_include("emp-tool/io/io_channel.h")
#include "emp-tool/io/io_channel.h"
#endif

namespace privml::ot {

template <class Io>
concept EmpLike = requires(Io& io, const void* from, void* to, std::size_t bytes) {
  io.send_data(from, bytes);
  io.recv_data(to, bytes);
  io.flush();
};

// A Channel as an IO. Does not own it; errors are the Channel's.
class EmpIo {
 public:
  explicit EmpIo(net::Channel& channel) : channel_(channel) {}
  void send_data(const void* data, std::size_t bytes) {
    counter += bytes;
    channel_.write({static_cast<const u8*>(data), bytes});
  }
  void recv_data(void* data, std::size_t bytes) { channel_.read({static_cast<u8*>(data), bytes}); }
  void flush() { channel_.flush(); }

  u64 counter = 0;  // bytes sent, as emp-tool counts them

 private:
  net::Channel& channel_;
};

// An IO as a byte transport. Does not own it. An IO knows no deadlines and cannot be closed: a peer
// that is gone shows as whatever the IO does then.
template <EmpLike Io>
class EmpTransport final : public net::Transport {
 public:
  explicit EmpTransport(Io& io) : io_(io) {}
  void send(Bytes header, Bytes payload, std::chrono::milliseconds) override {
    io_.send_data(header.data(), header.size());
    io_.send_data(payload.data(), payload.size());
    io_.flush();
  }
  void receive(MutableBytes bytes, std::chrono::milliseconds) override {
    io_.recv_data(bytes.data(), bytes.size());
  }
  void close() override {}

 private:
  Io& io_;
};

// An IO as a Channel; both ends need one, since frames travel over it. `io` must outlive it. Where
// the IO waits in send_data until the peer reads, as one over a socket does, the parties must not
// both write more before they read than its buffers hold.
template <EmpLike Io>
std::unique_ptr<net::Channel> channel_over(Io& io) {
  return std::make_unique<net::FramedChannel>(std::make_unique<EmpTransport<Io>>(io));
}

#if __has_include("emp-tool/io/io_channel.h")
// A Channel for templates that ask for emp::IOChannel.
class EmpIoChannel : public emp::IOChannel<EmpIoChannel> {
 public:
  explicit EmpIoChannel(Channel& channel) : io_(channel) {}
  void send_data_internal(const void* data, std::size_t bytes) { io_.send_data(data, bytes); }
  void recv_data_internal(void* data, std::size_t bytes) { io_.recv_data(data, bytes); }
  void flush() { io_.flush(); }

 private:
  EmpIo io_;
};
#endif

}  // namespace privml::ot
