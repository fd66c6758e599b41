// SPDX-License-Identifier: Apache-2.0
// The order in which both directions' extensions are made; reserve() and CostMeter share it.
#pragma once

#include <algorithm>

#include "base/types.h"

namespace privml::ot {

// What is missing for `wanted` when `available` are in stock, rounded up to the granularity.
constexpr i64 missing_correlations(i64 wanted, i64 available, i64 granularity) {
  return wanted <= available ? 0 : ceil_div(wanted - available, granularity) * granularity;
}

// Splits both directions into extensions of at most `tile`: calls extend(a, b) for each pair.
template <class Extend>
void for_each_extension(i64 first, i64 second, i64 tile, Extend&& extend) {
  while (first > 0 || second > 0) {
    const i64 a = std::min(first, tile), b = std::min(second, tile);
    extend(a, b);
    first -= a;
    second -= b;
  }
}

}  // namespace privml::ot
