// SPDX-License-Identifier: Apache-2.0
// A Channel over any byte transport: buffering, frames, byte counts, the depth clock, deadlines
// and, on request, a simulated delay and bandwidth.
//
// Frame: u32 payload length in [1, 65536], u32 sender's depth, u64 sender's tag (tagged.h),
// payload; all little-endian. A sender whose link is shaped adds 2^31 to the length and puts its
// monotonic clock in nanoseconds, a u64, before the payload. A frame with 2^30 added to its length
// carries an account: "differs", "stalled" (its sender has waited until its deadline) or a cause, a
// newline, and the lines of the account.
#pragma once

#include <string>

#include "base/buffer.h"
#include "net/channel.h"
#include "net/tagged.h"

namespace privml::net {

// At least nothing and at most a year, so that it can be added to any point in time.
std::chrono::milliseconds bounded(std::chrono::milliseconds duration);

// "60 s" or "250 ms", for messages.
std::string duration_text(std::chrono::milliseconds duration);

// A raw, reliable, ordered byte stream. All calls throw PeerDisconnected when the peer is gone or
// nothing has moved within the deadline.
class Transport {
 public:
  virtual ~Transport() = default;
  // Never waits for the peer's application to read while that one sends too: incoming bytes are
  // buffered if need be.
  virtual void send(Bytes header, Bytes payload, std::chrono::milliseconds deadline) = 0;
  virtual void receive(MutableBytes bytes, std::chrono::milliseconds deadline) = 0;
  // May be called by any thread.
  virtual void close() = 0;
  // See Channel.
  virtual std::string peer_name() const { return {}; }
  virtual CertifiedNames names() const { return {}; }
  virtual bool peer_closed() const { return false; }
  // "host:port" of the peer's end; empty if there is no network.
  virtual std::string peer_address() const { return {}; }
};

class FramedChannel final : public Channel, public Tagged {
 public:
  explicit FramedChannel(std::unique_ptr<Transport> transport);
  ~FramedChannel() override;

  void write(Bytes bytes) override;
  void read(MutableBytes bytes) override;
  void flush() override;
  Traffic traffic() const override { return traffic_; }
  void set_depth(i64 depth) override;
  void set_deadline(std::chrono::milliseconds deadline) override { deadline_ = bounded(deadline); }
  void close() override { transport_->close(); }
  std::string peer_name() const override { return transport_->peer_name(); }
  CertifiedNames names() const override { return transport_->names(); }
  bool peer_closed() const override { return transport_->peer_closed(); }
  std::string peer_address() const { return transport_->peer_address(); }

  void set_account(std::shared_ptr<const Account> account, bool peer_reads) override;
  void set_tag(u64 tag) override;
  [[noreturn]] void differ() override;
  void stalled() override;
  void report(const std::string& cause, std::chrono::milliseconds patience) override;

  // Incoming frames arrive `delay` after the link has carried them at `bits_per_second` (0:
  // unlimited). Both parties must run on one machine, since the clocks are compared; frames of a
  // peer whose end is not shaped count from when they are read.
  void shape(std::chrono::nanoseconds delay, double bits_per_second);

 private:
  struct Header;

  void send_frame(Bytes payload, u32 kind = 0);
  size_t receive_frame(MutableBytes bytes);
  Header receive_header(std::chrono::milliseconds deadline);
  void receive_first_header(Header& header);
  void send_account(const std::string& cause);
  [[noreturn]] void answer_account(const Header& header);
  std::string receive_account(const Header& header, std::chrono::milliseconds deadline);
  std::string await_account(std::chrono::milliseconds patience);
  void wait_for_link(u64 sent_at, i64 bytes);

  std::unique_ptr<Transport> transport_;
  std::chrono::milliseconds deadline_{60'000};
  AlignedVector<u8> outgoing_;
  size_t pending_ = 0;  // bytes of outgoing_ not yet sent
  AlignedVector<u8> incoming_;
  size_t consumed_ = 0;
  size_t arrived_ = 0;  // bytes [consumed_, arrived_) of incoming_ are not yet read
  Traffic traffic_;
  double delay_ns_ = 0;
  double ns_per_byte_ = 0;
  double link_free_ns_ = 0;
  std::shared_ptr<const Account> account_;
  bool peer_reads_ = true;
  u64 tag_ = 0;
  u64 arrived_tag_ = 0;  // of what incoming_ holds
};

}  // namespace privml::net
