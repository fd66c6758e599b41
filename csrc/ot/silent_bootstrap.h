// SPDX-License-Identifier: Apache-2.0
// The start of silent OT in both directions of a session: correlations from another provider, one
// iteration with the small parameters, whose outputs are what the first large iteration spends.
#pragma once

#include <memory>

#include "ot/cost.h"
#include "ot/silent.h"

namespace privml {

// One party's ends of both directions.
struct RcotPair {
  std::unique_ptr<Rcot> sender;
  std::unique_ptr<Rcot> receiver;
};

// Uses `base` up. Offsets stay as they are. `prg` is this party's randomness.
RcotPair silent_bootstrap(Channel& channel, RcotPair base, const SilentKeys& keys, bool malicious,
                          Prg& prg);
void cost_silent_bootstrap(CostMeter& meter, const RcotCost& base, bool malicious);

}  // namespace privml
