// SPDX-License-Identifier: Apache-2.0
// 1-of-2^m OTs in both directions at once: each party chooses in its own and sends for the peer's.
//
// Functionality  messages[i * 2^m + j] of `width` bits for the instances in which this party sends,
//                choices[i] for those in which it chooses; out[i] is the chosen message.
// Leakage        none beyond counts and widths. Assumption: correlated OT, correlation-robust hash.
//                The second form makes several such transfers in the same two flights.
// Cost           m correlations and 2^m * width bits per instance; depth 2.
#pragma once

#include <array>
#include <functional>
#include <span>

#include "ot/cost.h"
#include "ot/party.h"
#include "twopc/session/flight.h"

namespace privml::twopc {

void two_way_transfer(ot::Party& party, std::span<const u64> messages, std::span<const u8> choices,
                      int m, int width, std::span<u64> out);
// sent[r]: instances in which party r sends.
void cost_two_way_transfer(ot::CostMeter& meter, std::array<i64, 2> sent, int m, int width);

struct TwoWayTransfer {
  std::span<const u64> messages;
  std::span<const u8> choices;
  int m;
  int width;
  std::span<u64> out;
};
struct TwoWayShape {
  std::array<i64, 2> sent;
  int m;
  int width;
};
// `beside` is called in both flights, after their messages are written and before the peer's are
// read; of others' flights the cost takes what `next` returns.
void two_way_transfers(ot::Party& party, std::span<const TwoWayTransfer> transfers,
                       const std::function<void()>& beside = {});
void cost_two_way_transfers(ot::CostMeter& meter, std::span<const TwoWayShape> shapes,
                            const std::function<Flight()>& next = {});

}  // namespace privml::twopc
