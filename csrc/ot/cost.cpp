// SPDX-License-Identifier: Apache-2.0
#include "ot/cost.h"

#include <algorithm>

#include "base/error.h"
#include "ot/schedule.h"

namespace privml {

i64 RcotCost::message_bytes(int m, i64 count) const {
  if (provider == "ideal" || count == 0) return 0;
  if (provider == "silent") {
    // The receiver's first turn has nothing to say; then trees, challenge and digest (silent.h).
    constexpr i64 kCheckBytes = 32;
    return m == 0 ? 0 : m == 1 ? tree_bytes : kCheckBytes;
  }
  expect(provider == "softspoken" && k >= 1, "RcotCost: unknown provider");
  expect(m == 0, "RcotCost: an extension of SoftSpoken OT has one message");
  // One row of bits per field element beyond the first (softspoken.h).
  return (ceil_div(128, k) - 1) * count / 8;
}

double RcotCost::bits_per_correlation() const {
  i64 bytes = 0;
  for (int m = 0; m < messages; ++m) bytes += message_bytes(m, tile);
  return 8.0 * static_cast<double>(bytes) / static_cast<double>(tile);
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

void CostMeter::extend_both(const RcotCost& provider, i64 sender0, i64 sender1) {
  for_each_extension(sender0, sender1, provider.tile, [&](i64 count0, i64 count1) {
    for (int m = 0; m < provider.messages; ++m) {
      // Even messages come from the receiver: party 1 for what party 0 sends with.
      const i64 of0 = provider.message_bytes(m, count0), of1 = provider.message_bytes(m, count1);
      exchange(m % 2 == 0 ? of1 : of0, m % 2 == 0 ? of0 : of1);
    }
  });
}

void CostMeter::reserve(i64 sender0, i64 sender1) {
  const i64 missing0 = missing_correlations(sender0, available[0], rcot.granularity);
  const i64 missing1 = missing_correlations(sender1, available[1], rcot.granularity);
  const std::array<i64, 2> depth_before = depth, bytes_before = bytes;
  extend_both(rcot, missing0, missing1);
  for (int party : {0, 1}) {
    preprocess_bytes[party] += bytes[party] - bytes_before[party];
    preprocess_depth[party] += depth[party] - depth_before[party];
  }
  available[0] += missing0;
  available[1] += missing1;
}

void CostMeter::draw(int sender, i64 count) {
  reserve(sender == 0 ? count : 0, sender == 1 ? count : 0);
  available[sender] -= count;
  cots[sender] += count;
}

}  // namespace privml
