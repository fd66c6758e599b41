// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/shares/cost.h"

#include <algorithm>

namespace privml::spdz2k {

void CostMeter::message(int from, i64 count) {
  if (count == 0) return;
  bytes[from] += count;
  depth[1 - from] = std::max(depth[1 - from], depth[from] + 1);
}

void CostMeter::exchange(i64 from_party0, i64 from_party1) {
  const std::array<i64, 2> before = depth;
  bytes[0] += from_party0;
  bytes[1] += from_party1;
  if (from_party0 > 0) depth[1] = std::max(before[1], before[0] + 1);
  if (from_party1 > 0) depth[0] = std::max(before[0], before[1] + 1);
}

}  // namespace privml::spdz2k
