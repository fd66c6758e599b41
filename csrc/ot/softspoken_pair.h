// SPDX-License-Identifier: Apache-2.0
// SoftSpoken OT in both directions of a session from base OTs in one.
//
// Functionality  one Rcot in each direction (rcot.h); each party chooses its offset.
// Method         Party 1 has its 128 base OTs (base_ot.h) from party 0 and becomes the sender of
// the
//                first direction. Of that direction's first extension 128 correlations become the
//                base OTs in which party 0 chooses: it sends the differences d of its choices and
//                the correlations' random ones, and party 1 takes the hashes of q and q ^ delta, in
//                the order that d says, as keys. So an extension replaces public-key operations, as
//                in Beaver, "Correlated pseudorandomness and the complexity of private
//                computations" (STOC 1996).
// Security       base OTs of the second direction are transfers of the first one, so they are as
//                secure as those: with malicious security a dishonest party 0 has passed the
//                consistency check of that extension before party 1 sends anything under its keys,
//                and a dishonest party 1 learns d alone, which random choices hide. A dishonest
//                party 0 that has guessed g bits of party 1's offset, with probability 2^-g, still
//                lacks the others for the key that it did not choose.
// Assumption     those of base_ot.h and softspoken.h; correlation robustness of the fixed-key hash
//                (crypto/hash.h), its key drawn by both parties together, as in all derived
//                transfers.
// Leakage        that of softspoken.h.
// Cost           the base OTs, a seeds' message in each direction, an extension of 256
//                correlations, of which half are thrown away, and 16 bytes. Three messages, the
//                first from party 1; it may leave beside others.
#pragma once

#include <optional>

#include "ot/base_ot.h"
#include "ot/cost.h"
#include "ot/softspoken.h"

namespace privml::ot {

struct SoftSpokenSettings {
  int k;
  bool malicious;
};

class SoftSpokenPair {
 public:
  // `setup` is the base OTs' session id: public, agreed and fresh at each honest party.
  SoftSpokenPair(int rank, SoftSpokenSettings settings, const SessionId& setup, crypto::Prg& prg);

  // Party 1's request; nothing at party 0.
  void write_request(net::Channel& channel);
  // The other messages. `session` is a string that neither party could choose. Throws ProtocolError
  // and SecurityAbort as base_ot.h and softspoken.h do. The object is used up.
  RcotPair finish(net::Channel& channel, const SessionId& session);

 private:
  RcotPair finish_first(net::Channel& channel, const SessionId& session);
  RcotPair finish_second(net::Channel& channel, const SessionId& session);

  int rank_;
  SoftSpokenSettings settings_;
  SessionId setup_;
  crypto::Prg& prg_;
  Secret<crypto::Block> delta_;
  std::optional<BaseOtReceiver> base_receiver_;  // of party 1
};

// The request leaves beside what party 1 writes in an exchange of `beside` bytes.
void cost_softspoken_pair(CostMeter& meter, SoftSpokenSettings settings, i64 beside);

}  // namespace privml::ot
