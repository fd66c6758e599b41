// SPDX-License-Identifier: Apache-2.0
#include "net/framed.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/error.h"

namespace privml {
namespace {

constexpr size_t kFramePayload = size_t{64} << 10;

struct Header {
  u32 length;
  u32 depth;
  u64 sent_at;
};
static_assert(sizeof(Header) == 16);

u64 now_ns() {
  return static_cast<u64>(std::chrono::steady_clock::now().time_since_epoch() /
                          std::chrono::nanoseconds{1});
}

// Whether the first bytes are those of a handshake or an alert of TLS.
bool tls_record(u32 first) {
  const u32 kind = first & 0xff;
  return (kind == 0x15 || kind == 0x16) && (first >> 8 & 0xff) == 0x03;
}

}  // namespace

FramedChannel::FramedChannel(std::unique_ptr<Transport> transport)
    : transport_(std::move(transport)), outgoing_(kFramePayload), incoming_(kFramePayload) {}

FramedChannel::~FramedChannel() {
  try {
    flush();
  } catch (const std::exception&) {  // the peer is gone; there is nobody left to tell
  }
  transport_->close();
}

void FramedChannel::write(Bytes bytes) {
  traffic_.sent += static_cast<i64>(bytes.size());
  while (!bytes.empty()) {
    if (pending_ == 0 && bytes.size() >= kFramePayload) {
      send_frame(bytes.first(kFramePayload));
      bytes = bytes.subspan(kFramePayload);
      continue;
    }
    const size_t n = std::min(bytes.size(), kFramePayload - pending_);
    std::memcpy(outgoing_.data() + pending_, bytes.data(), n);
    pending_ += n;
    bytes = bytes.subspan(n);
    if (pending_ == kFramePayload) flush();
  }
}

void FramedChannel::flush() {
  if (pending_ == 0) return;
  const size_t n = std::exchange(pending_, 0);
  send_frame({outgoing_.data(), n});
}

void FramedChannel::set_depth(i64 depth) {
  flush();
  traffic_.depth = depth;
}

void FramedChannel::send_frame(Bytes payload) {
  const Header header{static_cast<u32>(payload.size()), static_cast<u32>(traffic_.depth), now_ns()};
  traffic_.framing += sizeof header;
  try {
    transport_->send({reinterpret_cast<const u8*>(&header), sizeof header}, payload, deadline_);
  } catch (...) {
    transport_->close();
    throw;
  }
}

void FramedChannel::read(MutableBytes bytes) {
  flush();
  while (!bytes.empty()) {
    size_t n = std::min(bytes.size(), arrived_ - consumed_);
    if (n > 0) {
      std::memcpy(bytes.data(), incoming_.data() + consumed_, n);
      consumed_ += n;
    } else {
      try {
        n = receive_frame(bytes);
      } catch (...) {
        transport_->close();
        throw;
      }
    }
    traffic_.received += static_cast<i64>(n);
    bytes = bytes.subspan(n);
  }
}

// Fills `bytes` as far as the next frame goes and keeps the rest of it. Returns the bytes filled.
size_t FramedChannel::receive_frame(MutableBytes bytes) {
  Header header;
  transport_->receive({reinterpret_cast<u8*>(&header), sizeof header}, deadline_);
  if (header.length == 0 || header.length > kFramePayload) {
    throw ProtocolError(tls_record(header.length)
                            ? "the peer speaks TLS and this party does not; give it a certificate"
                            : "the peer sent a frame of impossible length " +
                                  std::to_string(header.length) +
                                  "; is it a privml party of the same version?");
  }
  traffic_.framing += sizeof header;
  const size_t n = std::min<size_t>(bytes.size(), header.length);
  transport_->receive(bytes.first(n), deadline_);
  const size_t rest = header.length - n;
  if (rest > 0) transport_->receive({incoming_.data(), rest}, deadline_);
  consumed_ = 0;
  arrived_ = rest;
  traffic_.depth = std::max(traffic_.depth, static_cast<i64>(header.depth) + 1);
  wait_for_link(header.sent_at, header.length);
  return n;
}

void FramedChannel::shape(std::chrono::nanoseconds delay, double bits_per_second) {
  delay_ns_ = static_cast<double>(delay.count());
  ns_per_byte_ = bits_per_second > 0 ? 8e9 / bits_per_second : 0;
}

void FramedChannel::wait_for_link(u64 sent_at, i64 bytes) {
  if (delay_ns_ == 0 && ns_per_byte_ == 0) return;
  const u64 now = now_ns();
  // Nothing was sent in the future, whatever the frame says.
  link_free_ns_ = std::max(link_free_ns_, static_cast<double>(std::min(sent_at, now))) +
                  ns_per_byte_ * static_cast<double>(bytes);
  const double wait = link_free_ns_ + delay_ns_ - static_cast<double>(now);
  if (wait > 0) std::this_thread::sleep_for(std::chrono::nanoseconds{static_cast<i64>(wait)});
}

std::chrono::milliseconds bounded(std::chrono::milliseconds duration) {
  using std::chrono::milliseconds;
  return std::clamp(duration, milliseconds{0},
                    std::chrono::duration_cast<milliseconds>(std::chrono::years{1}));
}

std::string duration_text(std::chrono::milliseconds duration) {
  const auto count = duration.count();
  return count % 1000 == 0 ? std::to_string(count / 1000) + " s" : std::to_string(count) + " ms";
}

}  // namespace privml
