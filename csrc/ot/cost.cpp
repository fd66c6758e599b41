// SPDX-License-Identifier: Apache-2.0
#include "ot/cost.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "ot/schedule.h"
#include "ot/softspoken_check.h"

namespace privml::ot {

i64 RcotCost::message_bytes(int m, i64 count) const {
  if (provider == "ideal" || count == 0) return 0;
  if (provider == "silent") {
    // The receiver's first turn has nothing to say; then trees, challenge and digest (silent.h).
    constexpr i64 kCheckBytes = 32;
    return m == 0 ? 0 : m == 1 ? tree_bytes : kCheckBytes;
  }
  expect(provider == "softspoken" && k >= 1, "RcotCost: unknown provider");
  expect(m == 0, "RcotCost: an extension of SoftSpoken OT has one message");
  const i64 columns = count + (malicious ? kSoftSpokenHidingColumns : 0);
  // One row of bits per field element beyond the first (softspoken.h).
  return (ceil_div(128, k) - 1) * columns / 8 + (malicious ? kSoftSpokenProofBytes : 0);
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
  link.now[1 - from] = std::max(link.now[1 - from], link.arrival(from, count, link.now[from]));
}

void CostMeter::exchange(i64 from_party0, i64 from_party1) {
  const std::array<i64, 2> before = depth;
  const std::array<double, 2> sent_at = link.now;
  const std::array<i64, 2> counts{from_party0, from_party1};
  for (int from : {0, 1}) {
    if (counts[from] == 0) continue;
    bytes[from] += counts[from];
    depth[1 - from] = std::max(depth[1 - from], before[from] + 1);
    link.now[1 - from] =
        std::max(link.now[1 - from], link.arrival(from, counts[from], sent_at[from]));
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
  announce(sender0, sender1);
  if (refill) wait_for_refill({sender0, sender1});
}

void CostMeter::announce(i64 sender0, i64 sender1) {
  if (!refill) return make_missing(sender0, sender1);
  const std::array<i64, 2> own_depth = depth, own_preprocess = preprocess_depth;
  const LinkClock own_link = std::exchange(link, refill->link);
  const i64 stock = available[0] + available[1];
  follow(refill->depth, refill->preprocess, own_link.now);
  make_missing(sender0, sender1);
  if (available[0] + available[1] > stock) {
    refill->depth = depth;
    refill->preprocess = preprocess_depth;
    refill->link = link;
  }
  link = own_link;
  depth = own_depth;
  preprocess_depth = own_preprocess;
}

void CostMeter::begin_refill() {
  refill.emplace();
  refill->depth = depth;
  refill->link = link;
}

void CostMeter::set_link(double delay, double seconds_per_byte, double seconds_per_correlation) {
  for (LinkClock* each : {&link, refill ? &refill->link : &link}) {
    each->delay = delay;
    each->seconds_per_byte = seconds_per_byte;
    each->seconds_per_correlation = seconds_per_correlation;
  }
}

void CostMeter::make_missing(i64 sender0, i64 sender1) {
  const i64 missing0 = missing_correlations(sender0, available[0], rcot.granularity);
  const i64 missing1 = missing_correlations(sender1, available[1], rcot.granularity);
  for_each_extension(missing0, missing1, rcot.tile, [&](i64 count0, i64 count1) {
    const std::array<i64, 2> depth_before = depth, bytes_before = bytes;
    link.compute(link.seconds_per_correlation * static_cast<double>(count0 + count1));
    extend_both(rcot, count0, count1);
    for (int party : {0, 1}) {
      preprocess_bytes[party] += bytes[party] - bytes_before[party];
      preprocess_depth[party] += depth[party] - depth_before[party];
    }
    const std::array<i64, 2> counts{count0, count1};
    for (int sender : {0, 1}) {
      available[sender] += counts[sender];
      if (!refill || counts[sender] == 0) continue;
      refill->batches[sender].push_back(
          {cots[sender] + available[sender], depth, preprocess_depth, link.now});
    }
  });
}

// Goes on from the later clocks.
void CostMeter::follow(const std::array<i64, 2>& other, const std::array<i64, 2>& preprocess,
                       const std::array<double, 2>& seconds) {
  link.follow(seconds);
  for (int party : {0, 1}) {
    const auto path = std::max(std::pair{depth[party], preprocess_depth[party]},
                               std::pair{other[party], preprocess[party]});
    depth[party] = path.first;
    preprocess_depth[party] = path.second;
  }
}

// What is waited for was made by batches that have clocks of their own.
void CostMeter::wait_for_refill(const std::array<i64, 2>& wanted) {
  for (int sender : {0, 1}) {
    if (wanted[sender] == 0) continue;
    const i64 last = cots[sender] + wanted[sender];
    const auto& batches = refill->batches[sender];
    const auto batch = std::find_if(batches.begin(), batches.end(),
                                    [last](const auto& each) { return each.end >= last; });
    follow(batch->depth, batch->preprocess, batch->seconds);
  }
}

void CostMeter::draw(int sender, i64 count) {
  reserve(sender == 0 ? count : 0, sender == 1 ? count : 0);
  available[sender] -= count;
  cots[sender] += count;
}

}  // namespace privml::ot
