// SPDX-License-Identifier: Apache-2.0
// One ordered byte stream to one peer, used by one thread at a time.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "base/types.h"
#include "net/names.h"

namespace privml::net {

// Payload bytes that crossed the channel, and the depth of this party's view: every frame carries
// its sender's depth and reading one sets depth = max(depth, frame.depth + 1) (a Lamport clock), so
// the depth counts one-way message hops on the critical path, also with lanes and threads.
struct Traffic {
  i64 sent = 0;
  i64 received = 0;
  i64 depth = 0;
  // Bytes of the frames' headers, both directions together; not part of `sent` and `received`.
  i64 framing = 0;
};

// After an exception the connection is closed, for the stream may have been cut within a message.
class Channel {
 public:
  virtual ~Channel() = default;
  // Queues bytes; they leave at the next flush, read, or when the buffer is full. Parties may both
  // write any amount before they read.
  virtual void write(Bytes bytes) = 0;
  // Fills `bytes`; flushes first, so no protocol needs a manual flush.
  // Throws PeerDisconnected when the peer is gone or the deadline passes, ProtocolError when the
  // peer sends something else than frames.
  virtual void read(MutableBytes bytes) = 0;
  virtual void flush() = 0;
  virtual Traffic traffic() const = 0;
  // Sends what is queued and sets the depth clock: to 0 where a session begins, and forward where
  // what follows depends on values that came over another channel.
  virtual void set_depth(i64 depth) = 0;
  // The longest time a read may wait for a frame, or a write for a peer that takes nothing; every
  // channel starts with 60 seconds.
  virtual void set_deadline(std::chrono::milliseconds deadline) = 0;
  // Closes both directions; a read in another thread ends with PeerDisconnected.
  virtual void close() = 0;
  // The name that the peer has proved by a certificate, once something was read or sent; empty on
  // channels without TLS.
  virtual std::string peer_name() const { return {}; }
  // All names in the certificates of both sides, known when `peer_name` is.
  virtual CertifiedNames names() const { return {}; }
  // Whether the peer is known to send no more, told without a wait; what it sent before may still
  // be there to be read. False if this cannot be told.
  virtual bool peer_closed() const { return false; }
};

using ChannelPair = std::pair<std::unique_ptr<Channel>, std::unique_ptr<Channel>>;

}  // namespace privml::net
