// SPDX-License-Identifier: Apache-2.0
#include "net/framed.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/error.h"

namespace privml::net {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

constexpr size_t kFramePayload = size_t{64} << 10;
// What a frame's length says beside it.
constexpr u32 kHasClock = u32{1} << 31;
constexpr u32 kAccount = u32{1} << 30;
// How long the peer may take to send its account.
constexpr Milliseconds kAccountPatience{10'000};
constexpr Milliseconds kStalledPatience{5'000};
const std::string kDiffers = "differs", kStalled = "stalled";

struct WireHeader {
  u32 length;
  u32 depth;
  u64 tag;
  u64 sent_at;  // on the wire if the length says so
};
constexpr size_t kHeaderBytes = 16;
static_assert(sizeof(WireHeader) == kHeaderBytes + sizeof(u64));

u64 now_ns() {
  return static_cast<u64>(Clock::now().time_since_epoch() / std::chrono::nanoseconds{1});
}

// Whether the first bytes are those of a handshake or an alert of TLS.
bool tls_record(u32 first) {
  const u32 kind = first & 0xff;
  return (kind == 0x15 || kind == 0x16) && (first >> 8 & 0xff) == 0x03;
}

std::string cause_of(const std::string& account) { return account.substr(0, account.find('\n')); }

}  // namespace

struct FramedChannel::Header {
  u32 length;
  u32 depth;
  u64 tag;
  u64 sent_at;
  bool account;
};

FramedChannel::FramedChannel(std::unique_ptr<Transport> transport)
    : transport_(std::move(transport)), outgoing_(kFramePayload), incoming_(kFramePayload) {}

FramedChannel::~FramedChannel() {
  try {
    flush();
  } catch (const std::exception&) {  // the peer is gone; there is nothing left to flush to
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

void FramedChannel::send_frame(Bytes payload, u32 kind) {
  const bool shaped = delay_ns_ > 0 || ns_per_byte_ > 0;
  const WireHeader header{static_cast<u32>(payload.size()) | kind | (shaped ? kHasClock : 0),
                          static_cast<u32>(traffic_.depth), tag_, shaped ? now_ns() : 0};
  const size_t size = shaped ? sizeof header : kHeaderBytes;
  traffic_.framing += static_cast<i64>(size);
  try {
    transport_->send({reinterpret_cast<const u8*>(&header), size}, payload, deadline_);
  } catch (...) {
    transport_->close();
    throw;
  }
}

void FramedChannel::read(MutableBytes bytes) {
  flush();
  while (!bytes.empty()) {
    size_t n = std::min(bytes.size(), arrived_ - consumed_);
    try {
      if (n > 0) {
        if (account_ && arrived_tag_ != tag_) differ();
        std::memcpy(bytes.data(), incoming_.data() + consumed_, n);
        consumed_ += n;
      } else {
        n = receive_frame(bytes);
      }
    } catch (...) {
      transport_->close();
      throw;
    }
    traffic_.received += static_cast<i64>(n);
    bytes = bytes.subspan(n);
  }
}

// Fills `bytes` as far as the next frame goes and keeps the rest of it. Returns the bytes filled.
size_t FramedChannel::receive_frame(MutableBytes bytes) {
  Header header{};
  receive_first_header(header);
  if (header.account) answer_account(header);
  if (account_ && header.tag != tag_) {
    transport_->receive({incoming_.data(), header.length}, deadline_);
    differ();
  }
  const size_t n = std::min<size_t>(bytes.size(), header.length);
  transport_->receive(bytes.first(n), deadline_);
  const size_t rest = header.length - n;
  if (rest > 0) transport_->receive({incoming_.data(), rest}, deadline_);
  consumed_ = 0;
  arrived_ = rest;
  arrived_tag_ = header.tag;
  traffic_.depth = std::max(traffic_.depth, static_cast<i64>(header.depth) + 1);
  wait_for_link(header.sent_at, header.length);
  return n;
}

FramedChannel::Header FramedChannel::receive_header(Milliseconds deadline) {
  WireHeader wire{};
  auto* first = reinterpret_cast<u8*>(&wire);
  transport_->receive({first, kHeaderBytes}, deadline);
  const u32 length = wire.length & ~(kHasClock | kAccount);
  const bool account = (wire.length & kAccount) != 0;
  if (length == 0 || length > kFramePayload || (account && !account_)) {
    throw ProtocolError(tls_record(wire.length)
                            ? "the peer speaks TLS and this party does not; give it a certificate"
                            : "the peer sent a frame of impossible length " +
                                  std::to_string(wire.length) +
                                  "; is it a privml party of the same version?");
  }
  const bool has_clock = (wire.length & kHasClock) != 0;
  if (has_clock) transport_->receive({first + kHeaderBytes, sizeof(u64)}, deadline);
  traffic_.framing += static_cast<i64>(has_clock ? sizeof wire : kHeaderBytes);
  return {length, wire.depth, wire.tag, has_clock ? wire.sent_at : now_ns(), account};
}

void FramedChannel::receive_first_header(Header& header) {
  try {
    header = receive_header(deadline_);
  } catch (const PeerDisconnected&) {
    if (tag_ != 0 && peer_reads_) stalled();
    throw;
  }
}

void FramedChannel::set_account(std::shared_ptr<const Account> account, bool peer_reads) {
  flush();
  account_ = std::move(account);
  peer_reads_ = peer_reads;
}

void FramedChannel::set_tag(u64 tag) {
  flush();
  tag_ = tag;
}

void FramedChannel::differ() {
  expect(account_ != nullptr, "a channel without tags cannot differ");
  std::string theirs;
  if (peer_reads_) {
    try {
      send_account(kDiffers);
      theirs = await_account(kAccountPatience);
    } catch (const std::exception&) {  // that the two differ is what counts
    }
  }
  throw ProgramsDiffer(*account_, theirs);
}

void FramedChannel::stalled() {
  if (!account_ || transport_->peer_closed()) return;
  std::string theirs;
  try {
    send_account(kStalled);
    theirs = await_account(kStalledPatience);
  } catch (const std::exception&) {  // that there was no answer is what went wrong
  }
  if (!theirs.empty()) throw ProgramsDiffer(*account_, theirs);
}

void FramedChannel::report(const std::string& cause, Milliseconds patience) {
  expect(account_ != nullptr, "a channel without tags has no account");
  send_account(cause.substr(0, 2048));
  await_account(patience);  // the peer has read the cause before this side closes
}

void FramedChannel::send_account(const std::string& cause) {
  const std::string text = cause + "\n" + account_->text();
  send_frame({reinterpret_cast<const u8*>(text.data()), text.size()}, kAccount);
}

std::string FramedChannel::receive_account(const Header& header, Milliseconds deadline) {
  std::string text(header.length, '\0');
  transport_->receive({reinterpret_cast<u8*>(text.data()), text.size()}, deadline);
  return text;
}

void FramedChannel::answer_account(const Header& header) {
  const std::string theirs = receive_account(header, deadline_);
  try {
    send_account(cause_of(theirs) == kStalled ? kStalled : kDiffers);
  } catch (const std::exception&) {  // the peer has sent its account already
  }
  throw ProgramsDiffer(*account_, theirs);
}

// The account that follows all that the peer sent before; empty if none comes within that time.
std::string FramedChannel::await_account(Milliseconds patience) {
  const auto end = Clock::now() + std::min(patience, deadline_);
  for (;;) {
    const auto left = std::chrono::ceil<Milliseconds>(end - Clock::now());
    if (left <= Milliseconds{0}) return {};
    const Header header = receive_header(left);
    if (header.account) return receive_account(header, left);
    transport_->receive({incoming_.data(), header.length}, left);
  }
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

}  // namespace privml::net
