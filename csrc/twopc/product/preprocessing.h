// SPDX-License-Identifier: Apache-2.0
// What is done before a query, in the ledger and on a meter.
#pragma once

#include <chrono>

#include "ot/cost.h"
#include "ot/party.h"

namespace privml::twopc {

// Books what `body` does under Phase::preprocess, besides what it books there itself.
template <class Body>
void in_preprocessing(ot::Party& party, Body&& body) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  ot::PhaseCount& phase = party.ledger.phases[static_cast<int>(ot::Phase::preprocess)];
  const net::Traffic before = party.channel.traffic();
  const ot::PhaseCount booked = phase;
  body();
  party.channel.flush();
  const net::Traffic after = party.channel.traffic();
  phase.sent = booked.sent + after.sent - before.sent;
  phase.received = booked.received + after.received - before.received;
  phase.depth = booked.depth + after.depth - before.depth;
  phase.seconds = booked.seconds + std::chrono::duration<double>(Clock::now() - start).count();
}

template <class Body>
void meter_preprocessing(ot::CostMeter& meter, Body&& body) {
  const auto bytes = meter.bytes, depth = meter.depth;
  const auto booked_bytes = meter.preprocess_bytes, booked_depth = meter.preprocess_depth;
  body();
  for (const int r : {0, 1}) {
    meter.preprocess_bytes[r] = booked_bytes[r] + meter.bytes[r] - bytes[r];
    meter.preprocess_depth[r] = booked_depth[r] + meter.depth[r] - depth[r];
  }
}

}  // namespace privml::twopc
