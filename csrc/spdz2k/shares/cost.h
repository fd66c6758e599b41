// SPDX-License-Identifier: Apache-2.0
// A meter that counts an online protocol's messages without sending them. Every protocol has a
// function cost_<protocol>(CostMeter&, ...); tests check that bytes, depth and draws equal those of
// a run.
#pragma once

#include <map>

#include "spdz2k/preprocessing/supply.h"
#include "spdz2k/shares/openings.h"

namespace privml::spdz2k {

struct CostMeter {
  std::array<i64, 2> bytes{};  // sent by party 0 / 1
  std::array<i64, 2> depth{};  // Lamport clocks of party 0 / 1
  Demand demand;               // correlations drawn
  std::map<int, i64> pending;  // openings that the next check covers, by group
  i64 checks = 0;

  // One message: `from` writes, the other party reads it.
  void message(int from, i64 count);
  // Both parties write, then both read.
  void exchange(i64 from_party0, i64 from_party1);
  void exchange(i64 from_each) { exchange(from_each, from_each); }
};

}  // namespace privml::spdz2k
