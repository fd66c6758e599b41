// SPDX-License-Identifier: Apache-2.0
// The start of silent OT in both directions of a session: correlations from another provider, one
// iteration with the small parameters, whose outputs are what the first large iteration spends.
#pragma once

#include "ot/cost.h"
#include "ot/silent.h"

namespace privml::ot {

// Uses `base` up. Offsets stay as they are. `prg` is this party's randomness.
RcotPair silent_bootstrap(net::Channel& channel, RcotPair base, const SilentKeys& keys,
                          bool malicious, crypto::Prg& prg);
void cost_silent_bootstrap(CostMeter& meter, const RcotCost& base, bool malicious);

}  // namespace privml::ot
