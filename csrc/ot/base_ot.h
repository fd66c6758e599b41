// SPDX-License-Identifier: Apache-2.0
// Random oblivious transfers from public-key operations, the seed of OT extension.
//
// Functionality  endemic random OT: per instance the sender gets two 128-bit keys, the receiver the
//                key of its choice bit. A dishonest party may bias its own output, an honest one
//                gets random keys.
// Method         Masny and Rindal, "Endemic Oblivious Transfer" (CCS 2019), on ristretto255 with a
//                fresh key exchange per instance: the receiver sends points (r_0, r_1) with
//                r_c = a*G - H_c(r_{1-c}), r_{1-c} being sampled without a known logarithm; the
//                sender sends B = b*G and hashes b*(r_j + H_j(r_{1-j})); the receiver hashes a*B.
// Assumption     computational Diffie-Hellman on ristretto255, BLAKE2b as random oracle; then
//                secure against malicious parties. Hashes carry the session, the direction, the
//                instance and the transcript.
// Leakage        none. Invalid encodings and the identity are refused with ProtocolError.
// Flights        instances are independent, so requests and replies leave a few at a time and both
//                parties compute at once; a request may then depend on earlier replies, as
//                concurrent instances of the protocol allow.
// Cost           receiver to sender 64 bytes, sender to receiver 32 bytes per instance; two
//                messages. Receiver: two multiplications on the curve per instance, sender: three.
#pragma once

#include <array>
#include <vector>

#include "base/buffer.h"
#include "crypto/prg.h"
#include "net/channel.h"

namespace privml::ot {

using SessionId = std::array<u8, 32>;
using GroupPoint = std::array<u8, 32>;
using GroupScalar = std::array<u8, 32>;

inline constexpr i64 kBaseOtRequestBytes = 64;
inline constexpr i64 kBaseOtReplyBytes = 32;

// Two steps, so that a request may leave beside another message. `session` is fresh at each honest
// party; `sender_rank` separates directions.
class BaseOtReceiver {
 public:
  BaseOtReceiver(const SessionId& session, int sender_rank, WipedVector<u8> choices);
  BaseOtReceiver(const BaseOtReceiver&) = delete;
  void write_request(net::Channel& channel, crypto::Prg& prg);
  // One key per choice.
  WipedVector<crypto::Block> read_reply(net::Channel& channel);

 private:
  SessionId session_;
  int sender_rank_;
  WipedVector<u8> choices_;
  WipedVector<GroupScalar> exponents_;
  std::vector<u8> request_;
};

// Reads the request of `count` instances, writes the reply; returns both keys of each instance.
WipedVector<std::array<crypto::Block, 2>> base_ot_send(net::Channel& channel,
                                                       const SessionId& session, int sender_rank,
                                                       i64 count, crypto::Prg& prg);

}  // namespace privml::ot
