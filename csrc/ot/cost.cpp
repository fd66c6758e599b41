// SPDX-License-Identifier: Apache-2.0
#include "ot/cost.h"

#include <algorithm>

#include "base/error.h"
#include "ot/schedule.h"

namespace privml {

i64 RcotCost::extension_bytes(i64 count) const {
  if (provider == "ideal") return 0;
  expect(provider == "softspoken" && k >= 1, "RcotCost: provider must be ideal or softspoken");
  // One row of bits per field element beyond the first (softspoken.h).
  return (ceil_div(128, k) - 1) * count / 8;
}

void CostMeter::message(int from, i64 count) {
  if (count == 0) return;
  bytes[from] += count;
  depth[1 - from] = std::max(depth[1 - from], depth[from] + 1);
}

void CostMeter::exchange(i64 from_party0, i64 from_party1) {
  const std::array<i64, 2> before = depth;
  const std::array<i64, 2> counts{from_party0, from_party1};
  for (int from : {0, 1}) {
    if (counts[from] == 0) continue;
    bytes[from] += counts[from];
    depth[1 - from] = std::max(depth[1 - from], before[from] + 1);
  }
}

void CostMeter::reserve(i64 sender0, i64 sender1) {
  const i64 missing0 = missing_correlations(sender0, available[0], rcot.granularity);
  const i64 missing1 = missing_correlations(sender1, available[1], rcot.granularity);
  const std::array<i64, 2> before = depth;
  // The receiver of an extension writes: party 1 for the correlations that party 0 sends with.
  for_each_batch(missing1, missing0, [&](i64 count1, i64 count0) {
    const i64 from0 = rcot.extension_bytes(count1);
    const i64 from1 = rcot.extension_bytes(count0);
    exchange(from0, from1);
    preprocess_bytes[0] += from0;
    preprocess_bytes[1] += from1;
  });
  for (int party : {0, 1}) preprocess_depth[party] += depth[party] - before[party];
  available[0] += missing0;
  available[1] += missing1;
}

void CostMeter::draw(int sender, i64 count) {
  reserve(sender == 0 ? count : 0, sender == 1 ? count : 0);
  available[sender] -= count;
  cots[sender] += count;
}

}  // namespace privml
