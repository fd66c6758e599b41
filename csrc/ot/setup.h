// SPDX-License-Identifier: Apache-2.0
// Brings a two-party session up: common randomness, base OTs, the two pools.
//
// Functionality  the parties agree on a session id and the hash's key by committing to random
//                nonces before opening them, so neither chooses them alone; then
//                softspoken_pair.h; for silent OT silent_bootstrap.h after that.
// Session ids    the base OTs' is a hash of both commitments, each of which hides 32 random bytes
//                of its party, so it is fresh at an honest party before the nonces are opened; all
//                else has the hash of the nonces.
// Cost           64 bytes per party for the coin toss; softspoken_pair.h, whose first message
//                leaves with the nonces: a depth of four in all. Silent OT: 129 KB and two
//                exchanges besides. Nothing with the ideal provider.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/wipe.h"
#include "ot/cost.h"
#include "ot/party.h"

namespace privml::ot {

struct OtConfig {
  std::string provider = "softspoken";   // or "silent", or "ideal": tests only, insecure
  int k = 4;                             // SoftSpoken's field degree, 1..10; else ignored
  std::string security = "semi_honest";  // or "malicious": a cheating peer ends in SecurityAbort
  // TESTS ONLY: makes every random choice of this party a function of the seed. Both parties pass
  // the same seed. The ideal provider needs it.
  std::optional<crypto::Block> test_seed;
  // The session makes no correlations but gets those that `provider` has made in an earlier one,
  // whose offset at this party this was (stored.h).
  std::optional<Secret<crypto::Block>> stored_offset{};
};

// The provider's extension cost. Throws InvalidArgument for an unknown provider or k outside 1..10.
RcotCost rcot_cost(const OtConfig& config);

// Owns what a Party refers to; secrets are wiped on destruction.
class PartyResources {
 public:
  PartyResources(net::Channel& channel, int rank, CotPool sender, CotPool receiver, crypto::Prg prg,
                 crypto::Block hash_key, double correlation_bits);
  PartyResources(const PartyResources&) = delete;
  Party& party() { return party_; }

 private:
  CotPool sender_;
  CotPool receiver_;
  crypto::Prg prg_;
  crypto::CorrelationRobustHash hash_;
  Ledger ledger_;
  Party party_;
};

// Both parties call it with ranks 0 and 1 and the same configuration; the channel must outlive the
// result. Booked under Phase::setup. Throws InvalidArgument (configuration), ProtocolError
// (malformed group element), SecurityAbort (the peer did not open what it committed to,
// or its seeds are inconsistent), PeerDisconnected.
std::unique_ptr<PartyResources> make_party_resources(net::Channel& channel, int rank,
                                                     const OtConfig& config);
void cost_party_resources(CostMeter& meter);

}  // namespace privml::ot
