// SPDX-License-Identifier: Apache-2.0
// Bytes of messages that both parties write before either reads, so that they cost one hop
// together; and how a batch is divided so that each party sends for one half.
#pragma once

#include "ot/cost.h"

namespace privml::twopc {

struct Flight {
  i64 from_party0 = 0;
  i64 from_party1 = 0;
  friend Flight operator+(Flight a, Flight b) {
    return {a.from_party0 + b.from_party0, a.from_party1 + b.from_party1};
  }
};

inline void cost_flight(ot::CostMeter& meter, Flight flight) {
  meter.exchange(flight.from_party0, flight.from_party1);
}

// Instances [0, half) have party 0 as the sender of their OTs, instances [half, n) party 1.
constexpr i64 first_half(i64 n) { return n - n / 2; }

struct Halves {
  i64 send_begin, send_count, receive_begin, receive_count;
};

constexpr Halves halves(int rank, i64 n) {
  const i64 half = first_half(n);
  return rank == 0 ? Halves{0, half, half, n - half} : Halves{half, n - half, 0, half};
}

}  // namespace privml::twopc
