// SPDX-License-Identifier: Apache-2.0
// One protocol call over several lanes. A lane is a Party of its own: own channel, own
// correlations, own thread while it works.
//
// Functionality  elements [0, n) are divided into contiguous ranges, one per lane, from public
//                numbers alone, so that both parties divide alike. Protocols are exact: the shares
//                depend on the division, the values that they stand for do not.
// Leakage        that of the protocol on each range; lanes share no key and no correlation.
// Cost           the sum of the ranges' costs; the depth is that of the deepest range.
#pragma once

#include <functional>
#include <vector>

#include "base/types.h"

namespace privml::twopc {

struct LaneRange {
  i64 begin = 0;
  i64 count = 0;
};

// Fewer elements than this are not worth a thread and a message of their own.
inline constexpr i64 kLaneElements = i64{1} << 12;

// At most `lanes` ranges of at least `least` elements (at least one range). Long ones, but for the
// last, are multiples of 64, so that bits and narrow numbers fill whole words.
std::vector<LaneRange> divide_over_lanes(i64 n, i64 lanes, i64 least = kLaneElements);

// Runs body(0), ..., body(count - 1), the first on this thread and each other one on its own, and
// returns when all have ended. When one throws, on_failure(lane) is called where the exception was
// caught (std::current_exception() is it; several threads may call): it ends what other bodies wait
// for. Then the first exception is rethrown. Lane -1: a thread could not be started.
void run_on_lanes(i64 count, const std::function<void(i64)>& body,
                  const std::function<void(i64)>& on_failure);

}  // namespace privml::twopc
