// SPDX-License-Identifier: Apache-2.0
// The cost of making correlations: one meter counts messages and correlated OTs, the other the
// openings and draws of the session; both use one pair of clocks.
#pragma once

#include <optional>
#include <utility>

#include "ot/cost.h"
#include "spdz2k/shares/cost.h"
#include "spdz2k/vole/silent_vole.h"

namespace privml::spdz2k {

struct GenerationMeter {
  explicit GenerationMeter(RcotCost rcot) : wire(std::move(rcot)) {}

  ::privml::CostMeter wire;  // all bytes, the clocks, the correlated OTs
  CostMeter session;         // openings pending, correlations drawn; its bytes and clocks follow
  std::optional<SilentVoleMeter> voles;  // if one makes the products with the MAC keys
  bool pool_used = false;                // the next reserve that makes products takes a fresh one

  // Runs a cost function of the online protocols.
  template <class ProtocolCost>
  void online(ProtocolCost&& cost) {
    session.bytes = wire.bytes;
    session.depth = wire.depth;
    cost(session);
    wire.bytes = session.bytes;
    wire.depth = session.depth;
  }
};

}  // namespace privml::spdz2k
