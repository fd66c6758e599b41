// SPDX-License-Identifier: Apache-2.0
// A Channel over any byte transport: buffering, frames, byte counts, the depth clock, deadlines
// and, on request, a simulated delay and bandwidth.
//
// Frame: u32 payload length, u32 sender's depth, u64 sender's monotonic clock in nanoseconds,
// payload.
#pragma once

#include <vector>

#include "net/channel.h"

namespace privml {

// A raw, reliable, ordered byte stream. All calls throw PeerDisconnected when the peer is gone.
class Transport {
 public:
  virtual ~Transport() = default;
  // Stores incoming bytes aside while the peer, sending itself, does not read; gives up when no
  // byte moves either way for `deadline`.
  virtual void send(Bytes header, Bytes payload, std::chrono::milliseconds deadline) = 0;
  virtual void receive(MutableBytes bytes, std::chrono::milliseconds deadline) = 0;
  virtual void close() = 0;
};

class FramedChannel final : public Channel {
 public:
  explicit FramedChannel(std::unique_ptr<Transport> transport);
  ~FramedChannel() override;

  void write(Bytes bytes) override;
  void read(MutableBytes bytes) override;
  void flush() override;
  Traffic traffic() const override { return traffic_; }
  void set_deadline(std::chrono::milliseconds deadline) override { deadline_ = deadline; }
  void close() override { transport_->close(); }

  // Incoming frames arrive `delay` after the link has carried them at `bits_per_second` (0:
  // unlimited). Both parties must run on one machine, since the clocks are compared.
  void shape(std::chrono::nanoseconds delay, double bits_per_second);

 private:
  void receive_frame();
  void wait_for_link(u64 sent_at, i64 bytes);

  std::unique_ptr<Transport> transport_;
  std::chrono::milliseconds deadline_{60'000};
  std::vector<u8> outgoing_;
  std::vector<u8> incoming_;
  size_t consumed_ = 0;
  Traffic traffic_;
  double delay_ns_ = 0;
  double ns_per_byte_ = 0;
  double link_free_ns_ = 0;
};

}  // namespace privml
