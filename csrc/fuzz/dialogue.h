// SPDX-License-Identifier: Apache-2.0
// A protocol with fixed randomness, one of whose parties is replaced by arbitrary bytes.
//
// An honest run is recorded once. Afterwards either party can be run alone against what it received
// in that run with some changes (fuzz/scripted.h), so that a changed message is met with everything
// before it in order; or against bytes that have nothing to do with it.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <vector>

#include "net/channel.h"

namespace privml::fuzz {

// What party `rank` does on its channel; a function of the bytes it reads.
using Side = std::function<void(net::Channel&, int rank)>;

enum class Ending { completed, refused };

class Dialogue {
 public:
  // Runs both sides against each other.
  explicit Dialogue(Side side);
  // Party `rank` alone. Ends in one of the exceptions that a peer may cause, or completes; every
  // other exception passes through.
  Ending run_alone(int rank, Bytes script) const;
  // What `rank` has received in the honest run.
  const std::vector<u8>& received(int rank) const { return received_[static_cast<size_t>(rank)]; }

 private:
  Side side_;
  std::array<std::vector<u8>, 2> received_;
};

// SecurityAbort, ProtocolError, PeerDisconnected and IdentityError are refusals.
Ending ending_of(const std::function<void()>& run);

// First byte: lowest bit the party, next bit whether what follows is the peer's bytes as they are
// (else changes), the rest which dialogue.
void run_any(std::span<const Dialogue> dialogues, Bytes input);

}  // namespace privml::fuzz
