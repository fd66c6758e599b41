// SPDX-License-Identifier: Apache-2.0
// Messages of one direction of a channel, encrypted and authenticated under a key of both ends.
//
// Functionality  what one end sends, the other one receives, or SecurityAbort.
// Method         AES-256-GCM (OpenSSL). A message is cut into pieces of at most kPieceBytes, so
//                that a piece and its tag fill one frame of the channel. The nonce is the number of
//                the piece, so that none can be left out, repeated or moved.
// Leakage        the lengths of the messages.
// Assumption     the key is used for one direction of one channel, and for nothing else.
#pragma once

#include <array>
#include <memory>

#include "base/buffer.h"
#include "net/channel.h"

namespace privml::net {

class SealedMessages {
 public:
  static constexpr size_t kKeyBytes = 32;
  static constexpr size_t kTagBytes = 16;
  static constexpr size_t kPieceBytes = (size_t{64} << 10) - kTagBytes;

  // `key` has kKeyBytes. One end only sends, the other one only receives.
  SealedMessages(std::shared_ptr<Channel> channel, Bytes key);

  void send(Bytes message);
  // The next message, of the length that it was sent with. Throws SecurityAbort when the peer has
  // sent another one; the channel is closed then and `message` is wiped.
  void receive(MutableBytes message);

 private:
  using Nonce = std::array<u8, 12>;
  Nonce next_nonce();

  std::shared_ptr<Channel> channel_;
  std::shared_ptr<void> cipher_;  // of OpenSSL, which wipes the key with it
  AlignedVector<u8> sealed_;
  u64 pieces_ = 0;
};

}  // namespace privml::net
