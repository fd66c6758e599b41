// SPDX-License-Identifier: Apache-2.0
// Long inputs are processed part by part, so that memory stays bounded.
#pragma once

#include <algorithm>

#include "base/types.h"

namespace privml::spdz2k {

// Comparisons and similar operations per part: each holds several kilobytes of correlations.
inline constexpr i64 kComparisons = i64{1} << 14;

// Calls part(first, count) for consecutive ranges of at most `limit` of n elements.
template <class Part>
void in_parts(i64 n, i64 limit, Part&& part) {
  for (i64 first = 0; first < n; first += limit) part(first, std::min(limit, n - first));
}

}  // namespace privml::spdz2k
