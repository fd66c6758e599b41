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
// Cost           receiver to sender 64 bytes, sender to receiver 32 bytes per instance; two
//                messages.
#pragma once

#include <array>
#include <vector>

#include "base/buffer.h"
#include "crypto/prg.h"
#include "net/channel.h"

namespace privml {

using SessionId = std::array<u8, 32>;
using GroupPoint = std::array<u8, 32>;
using GroupScalar = std::array<u8, 32>;

inline constexpr i64 kBaseOtRequestBytes = 64;
inline constexpr i64 kBaseOtReplyBytes = 32;

// Two steps each, so that both directions share the round trips. `sender_rank` separates the
// directions.
class BaseOtReceiver {
 public:
  BaseOtReceiver(const SessionId& session, int sender_rank, WipedVector<u8> choices);
  BaseOtReceiver(const BaseOtReceiver&) = delete;
  void write_request(Channel& channel, Prg& prg);
  // One key per choice.
  WipedVector<Block> read_reply(Channel& channel);

 private:
  SessionId session_;
  int sender_rank_;
  WipedVector<u8> choices_;
  WipedVector<GroupScalar> exponents_;
  std::vector<u8> request_;
};

// Reads the request of `count` instances, writes the reply; returns both keys of each instance.
WipedVector<std::array<Block, 2>> base_ot_send(Channel& channel, const SessionId& session,
                                               int sender_rank, i64 count, Prg& prg);

}  // namespace privml
