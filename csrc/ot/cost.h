// SPDX-License-Identifier: Apache-2.0
// A meter that walks through a protocol's messages without sending them. Next to every protocol
// stands a function `cost_<protocol>(CostMeter&, ...)` that makes the same calls in the same order;
// a test demands that bytes, depth and correlations equal the ledger exactly.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "ot/link_clock.h"
#include "ot/rcot.h"

namespace privml::ot {

// The clocks of a refill (refill.h): its messages go on beside the protocols', and what it makes
// carries its clock.
struct RefillMeter {
  struct Batch {
    i64 end;  // correlations of its direction made up to here
    std::array<i64, 2> depth, preprocess;
    std::array<double, 2> seconds;
  };
  std::array<i64, 2> depth{}, preprocess{};
  LinkClock link;
  std::array<std::vector<Batch>, 2> batches;  // by the sender's rank
};

struct CostMeter {
  explicit CostMeter(RcotCost rcot_cost)
      : rcot(std::move(rcot_cost)), correlation_bits(rcot.bits_per_correlation()) {}

  RcotCost rcot;
  double correlation_bits;                // as Party::correlation_bits
  i64 chunk_factor = 1;                   // as Party::chunk_factor
  bool ciphertexts = false;               // as Party::ciphertexts
  unsigned slot_keys = 0;                 // bits for what Party::slot_keys has; the highest: any
  std::array<i64, 2> bytes{};             // sent by party 0 / 1, preprocessing included
  std::array<i64, 2> preprocess_bytes{};  // of these, for correlations
  std::array<i64, 2> preprocess_depth{};  // of depth below, what reserve() added
  std::array<i64, 2> depth{};             // Lamport clocks of party 0 / 1
  std::array<i64, 2> cots{};              // drawn correlations, indexed by the sender's rank
  std::array<i64, 2> available{};         // stock of the two pools, indexed by the sender's rank
  std::optional<RefillMeter> refill;      // if a refill makes the correlations
  LinkClock link;                         // of no delay until set_link()

  // One message: `from` writes, the other party reads it.
  void message(int from, i64 count);
  // Both parties write, then both read.
  void exchange(i64 from_party0, i64 from_party1);
  // Mirrors extend_both(): counts are indexed by the sender's rank.
  void extend_both(const RcotCost& provider, i64 sender0, i64 sender1);
  // Mirrors reserve(): counts are indexed by the sender's rank.
  void reserve(i64 sender0, i64 sender1);
  // Mirrors announce().
  void announce(i64 sender0, i64 sender1);
  // Mirrors draw_as_sender() of party `sender`.
  void draw(int sender, i64 count);
  // From here on a refill makes the correlations.
  void begin_refill();
  // From here on messages take time. Delay and computing in seconds, bytes of each direction.
  void set_link(double delay, double seconds_per_byte, double seconds_per_correlation);

 private:
  // Makes what is missing for the wanted counts; all its messages are preprocessing.
  void make_missing(i64 sender0, i64 sender1);
  void follow(const std::array<i64, 2>& other, const std::array<i64, 2>& preprocess,
              const std::array<double, 2>& seconds);
  void wait_for_refill(const std::array<i64, 2>& wanted);
};

// Correlations that `protocol_cost` draws at a party (or on a meter) that plans like `planner`, so
// that a protocol can reserve them in one go: reserve(party, n[party.rank], n[1 - party.rank]).
template <class Planner, class ProtocolCost>
std::array<i64, 2> count_correlations(const Planner& planner, ProtocolCost&& protocol_cost) {
  constexpr i64 kOneExtension = i64{1} << 62;  // the meter walks through every extension
  CostMeter meter{RcotCost{"ideal", 0, 1, kOneExtension}};
  meter.correlation_bits = planner.correlation_bits;
  meter.chunk_factor = planner.chunk_factor;
  meter.ciphertexts = planner.ciphertexts;
  protocol_cost(meter);
  return meter.cots;
}

}  // namespace privml::ot
