// SPDX-License-Identifier: Apache-2.0
// The order in which both directions' extensions are made; reserve() and CostMeter share it.
#pragma once

#include <algorithm>

#include "base/types.h"

namespace privml {

// Correlations per direction between two changes from writing to reading. It bounds the bytes in
// flight (2^19 correlations: 2 MB at k = 4, 8 MB at k = 1) and is long enough to cover a wide-area
// round trip.
inline constexpr i64 kExtensionBatch = i64{1} << 19;

// What is missing for `wanted` when `available` are in stock, rounded up to the granularity.
constexpr i64 missing_correlations(i64 wanted, i64 available, i64 granularity) {
  return wanted <= available ? 0 : ceil_div(wanted - available, granularity) * granularity;
}

// Splits `count` into tiles: calls extend(size) for each.
template <class Extend>
void for_each_tile(i64 count, i64 tile, Extend&& extend) {
  for (i64 done = 0; done < count; done += tile) extend(std::min(tile, count - done));
}

// Splits both directions into batches: calls step(a, b) with at most kExtensionBatch of each.
template <class Step>
void for_each_batch(i64 first, i64 second, Step&& step) {
  while (first > 0 || second > 0) {
    const i64 a = std::min(first, kExtensionBatch), b = std::min(second, kExtensionBatch);
    step(a, b);
    first -= a;
    second -= b;
  }
}

}  // namespace privml
