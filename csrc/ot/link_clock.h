// SPDX-License-Identifier: Apache-2.0
// When messages arrive on a link of a given delay and bandwidth, for meters: seconds since the
// session began, by party, beside the count of messages. Computing is added by callers that know
// it.
#pragma once

#include <algorithm>
#include <array>

#include "base/types.h"

namespace privml::ot {

struct LinkClock {
  double delay = 0;                    // one way
  double seconds_per_byte = 0;         // of each direction
  double seconds_per_correlation = 0;  // that either party takes to make one
  std::array<double, 2> now{};         // how far each party is
  std::array<double, 2> free{};        // when the direction from each party has carried everything

  void compute(double seconds) {
    for (double& each : now) each += seconds;
  }
  // When `count` bytes that party `from` sends at time `at` are there.
  double arrival(int from, i64 count, double at) {
    free[from] = std::max(free[from], at) + seconds_per_byte * static_cast<double>(count);
    return free[from] + delay;
  }
  // Goes on from the later times.
  void follow(const std::array<double, 2>& other) {
    for (int party : {0, 1}) now[party] = std::max(now[party], other[party]);
  }
};

}  // namespace privml::ot
