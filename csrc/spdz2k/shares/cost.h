// SPDX-License-Identifier: Apache-2.0
// A meter of actively secure protocols: messages and correlated OTs as ot/cost.h counts them, and
// what is drawn and opened. Protocols made of others count themselves (side.h), the rest have
// cost_<protocol>(CostMeter&, ...); tests check that bytes, depth and draws equal those of a run.
#pragma once

#include <map>
#include <optional>
#include <utility>

#include "ot/cost.h"
#include "spdz2k/preprocessing/supply.h"
#include "spdz2k/shares/openings.h"

namespace privml::spdz2k {

// What a SilentVole has in stock, by the owner's rank, for costs.
struct SilentVoleMeter {
  std::array<i64, 2> stock{};
};

struct CostMeter : ot::CostMeter {
  // Without a cost of correlated OTs it counts all else.
  explicit CostMeter(ot::RcotCost rcot = {"ideal", 0, 1, i64{1} << 62})
      : ot::CostMeter(std::move(rcot)) {}

  Demand demand;               // correlations drawn
  std::map<int, i64> pending;  // openings that the next check covers, by group
  i64 checks = 0;
  std::optional<SilentVoleMeter> voles;  // if one makes the products with the MAC keys
  bool pool_used = false;                // the next reserve that makes products takes a fresh one

  using ot::CostMeter::exchange;
  void exchange(i64 from_each) { exchange(from_each, from_each); }
};

}  // namespace privml::spdz2k
