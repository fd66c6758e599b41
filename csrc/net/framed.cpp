// SPDX-License-Identifier: Apache-2.0
#include "net/framed.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/error.h"

namespace privml {
namespace {

constexpr size_t kFramePayload = size_t{64} << 10;
constexpr size_t kLargestFrame = size_t{16} << 20;

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

}  // namespace

FramedChannel::FramedChannel(std::unique_ptr<Transport> transport)
    : transport_(std::move(transport)) {
  outgoing_.reserve(kFramePayload);
}

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
    const size_t n = std::min(bytes.size(), kFramePayload - outgoing_.size());
    outgoing_.insert(outgoing_.end(), bytes.begin(),
                     bytes.begin() + static_cast<std::ptrdiff_t>(n));
    bytes = bytes.subspan(n);
    if (outgoing_.size() == kFramePayload) flush();
  }
}

void FramedChannel::flush() {
  if (outgoing_.empty()) return;
  const Header header{static_cast<u32>(outgoing_.size()), static_cast<u32>(traffic_.depth),
                      now_ns()};
  try {
    transport_->send({reinterpret_cast<const u8*>(&header), sizeof header}, outgoing_, deadline_);
  } catch (...) {
    outgoing_.clear();  // part of it may have left: it must not be sent again
    transport_->close();
    throw;
  }
  outgoing_.clear();
}

void FramedChannel::read(MutableBytes bytes) {
  flush();
  while (!bytes.empty()) {
    if (consumed_ == incoming_.size()) receive_frame();
    const size_t n = std::min(bytes.size(), incoming_.size() - consumed_);
    std::memcpy(bytes.data(), incoming_.data() + consumed_, n);
    consumed_ += n;
    traffic_.received += static_cast<i64>(n);
    bytes = bytes.subspan(n);
  }
}

// Part of a frame may be lost where this fails, so the channel is not read further then.
void FramedChannel::receive_frame() try {
  Header header;
  transport_->receive({reinterpret_cast<u8*>(&header), sizeof header}, deadline_);
  if (header.length == 0 || header.length > kLargestFrame)
    throw ProtocolError("the peer sent a frame of impossible length " +
                        std::to_string(header.length) +
                        "; is it a privml party of the same version?");
  incoming_.resize(header.length);
  consumed_ = 0;
  transport_->receive(incoming_, deadline_);
  traffic_.depth = std::max(traffic_.depth, static_cast<i64>(header.depth) + 1);
  wait_for_link(header.sent_at, header.length);
} catch (...) {
  incoming_.clear();
  consumed_ = 0;
  transport_->close();
  throw;
}

void FramedChannel::shape(std::chrono::nanoseconds delay, double bits_per_second) {
  delay_ns_ = static_cast<double>(delay.count());
  ns_per_byte_ = bits_per_second > 0 ? 8e9 / bits_per_second : 0;
}

void FramedChannel::wait_for_link(u64 sent_at, i64 bytes) {
  if (delay_ns_ == 0 && ns_per_byte_ == 0) return;
  link_free_ns_ = std::max(link_free_ns_, static_cast<double>(sent_at)) +
                  ns_per_byte_ * static_cast<double>(bytes);
  const double wait = link_free_ns_ + delay_ns_ - static_cast<double>(now_ns());
  if (wait > 0) std::this_thread::sleep_for(std::chrono::nanoseconds{static_cast<i64>(wait)});
}

}  // namespace privml
