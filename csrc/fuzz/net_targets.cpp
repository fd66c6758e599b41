// SPDX-License-Identifier: Apache-2.0
// Frames, sockets and the emp adapter: the payload that a reader gets is that of a second, simpler
// parser, for any bytes and any sizes of reads.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

#include "base/error.h"
#include "fuzz/scripted.h"
#include "fuzz/targets.h"
#include "net/tcp_transport.h"
#include "ot/emp_channel.h"

namespace privml::fuzz {
namespace {

constexpr size_t kPlan = 8;  // bytes of an input that say what the reader asks for
constexpr std::array<size_t, 8> kReads{1, 2, 7, 16, 255, 4096, 65536, 100'000};
constexpr size_t kHeader = 16;
constexpr size_t kLargestFrame = 65536;
constexpr u32 kHasClock = u32{1} << 31;  // of a length: 8 bytes precede the payload

void demand(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

// The payloads of the frames of `bytes`, up to where they end or are none.
std::vector<u8> payload_of(Bytes bytes) {
  std::vector<u8> payload;
  while (bytes.size() >= kHeader) {
    u32 length;
    std::memcpy(&length, bytes.data(), sizeof length);
    bytes = bytes.subspan(kHeader);
    const bool clock = (length & kHasClock) != 0;
    length &= ~kHasClock;
    if (length == 0 || length > kLargestFrame || (clock && bytes.size() < sizeof(u64))) break;
    if (clock) bytes = bytes.subspan(sizeof(u64));
    const Bytes part = bytes.first(std::min<size_t>(length, bytes.size()));
    payload.insert(payload.end(), part.begin(), part.end());
    bytes = bytes.subspan(part.size());
  }
  return payload;
}

// Reads what `plan` asks for, in turn, until the stream ends.
void read_all(net::Channel& channel, Bytes plan, const std::vector<u8>& expected) {
  std::vector<u8> got(*std::max_element(kReads.begin(), kReads.end()));
  size_t at = 0;
  const Ending ending = ending_of([&] {
    for (size_t turn = 0;; ++turn) {
      const MutableBytes piece =
          MutableBytes(got).first(kReads[plan[turn % plan.size()] % kReads.size()]);
      channel.read(piece);
      demand(at + piece.size() <= expected.size(), "more was read than was sent");
      demand(std::equal(piece.begin(), piece.end(), expected.begin() + at),
             "other bytes were read");
      at += piece.size();
    }
  });
  demand(ending == Ending::refused, "a stream without end");
  demand(channel.traffic().received >= static_cast<i64>(at), "bytes are missing in the count");
  const Ending after = ending_of([&] { channel.read(MutableBytes(got).first(1)); });
  demand(after == Ending::refused, "a channel goes on after an error");
}

// An IO in the manner of emp-tool.
struct ScriptedIo {
  ScriptedChannel channel;
  void send_data(const void* data, size_t bytes) {
    channel.write({static_cast<const u8*>(data), bytes});
  }
  void recv_data(void* data, size_t bytes) { channel.read({static_cast<u8*>(data), bytes}); }
  void flush() {}
};

}  // namespace

void run_frames(Bytes input) {
  if (input.size() < kPlan) return;
  const Bytes stream = input.subspan(kPlan);
  net::FramedChannel channel(std::make_unique<ScriptedTransport>(stream));
  if ((input[0] & 0x80) != 0) channel.shape(std::chrono::nanoseconds{1}, 1e15);
  read_all(channel, input.first(kPlan), payload_of(stream));
}

void run_emp(Bytes input) {
  if (input.size() < kPlan) return;
  const Bytes stream = input.subspan(kPlan);
  ScriptedIo io{ScriptedChannel(stream)};
  const auto channel = ot::channel_over(io);
  ot::EmpIo back(*channel);
  const std::vector<u8> expected = payload_of(stream);
  std::vector<u8> got(kReads[4]);
  size_t at = 0;
  ending_of([&] {
    for (;;) {
      const size_t n = std::min(got.size(), kReads[input[at % kPlan] % 5]);
      back.recv_data(got.data(), n);
      demand(at + n <= expected.size() && std::equal(got.begin(), got.begin() + n, &expected[at]),
             "other bytes were read");
      at += n;
    }
  });
}

// A real socket whose other end has sent `stream` and closed; first byte's upper bits: this side
// sends more than the socket holds before it reads.
void run_sockets(Bytes input) {
  if (input.size() < kPlan) return;
  const Bytes stream = input.subspan(kPlan, std::min<size_t>(input.size() - kPlan, 100'000));
  std::array<int, 2> ends;
  demand(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0, "no socket");
  for (Bytes rest = stream; !rest.empty();) {
    const ssize_t n = send(ends[1], rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n <= 0) break;
    rest = rest.subspan(static_cast<size_t>(n));
  }
  {
    net::FramedChannel channel(std::make_unique<net::TcpTransport>(ends[0]));
    channel.set_deadline(std::chrono::milliseconds{1});
    const bool sends_much = (input[0] & 0x80) != 0;
    if (!sends_much) shutdown(ends[1], SHUT_WR);
    if (sends_much) {
      const std::vector<u8> much(3'000'000);
      demand(ending_of([&] { channel.write(much); }) == Ending::refused, "a full socket took all");
    } else {
      read_all(channel, input.first(kPlan), payload_of(stream));
    }
  }
  ::close(ends[1]);
}

}  // namespace privml::fuzz
