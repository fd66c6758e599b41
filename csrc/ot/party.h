// SPDX-License-Identifier: Apache-2.0
// What every two-party protocol receives: one party's channel, correlations, randomness and
// counters.
#pragma once

#include <array>
#include <memory>

#include "crypto/hash.h"
#include "crypto/prg.h"
#include "net/channel.h"
#include "ot/pool.h"

namespace privml::twopc {
struct SlotKeys;  // twopc/product/slot_product.h
}

namespace privml::ot {

enum class Phase { setup = 0, preprocess = 1, online = 2 };

struct PhaseCount {
  double seconds = 0;
  i64 sent = 0;
  i64 received = 0;
  i64 depth = 0;
};

struct Ledger {
  std::array<PhaseCount, 3> phases{};
  i64 cots_as_sender = 0;
  i64 cots_as_receiver = 0;
};

class Refill;

// A path of messages: how long it is, and how many of them made correlations.
struct PathClock {
  i64 depth = 0;
  i64 preprocess = 0;
  friend auto operator<=>(const PathClock&, const PathClock&) = default;
};

struct Party {
  int rank;  // 0 or 1
  net::Channel& channel;
  CotPool& sender;    // this party sends, the peer chooses
  CotPool& receiver;  // this party chooses, the peer sends
  crypto::Prg& prg;   // this party's own randomness
  const crypto::CorrelationRobustHash& hash;
  double
      correlation_bits;  // what a correlation costs on the wire: plans weigh it, both parties alike
  Ledger& ledger;        // setup and preprocess are booked as they happen; online is the rest
  Refill* refill = nullptr;  // makes the pools' correlations if there is one (refill.h)
  // Chunks are so many times as long: fewer messages, more memory. Both parties alike.
  i64 chunk_factor = 1;
  // Whether protocols may make products by lattice ciphertexts where these cost less, both parties
  // alike; and the keys that serve the calls of a session, once one has made them.
  bool ciphertexts = false;
  std::shared_ptr<twopc::SlotKeys> slot_keys = {};
};

// Makes `as_sender` and `as_receiver` correlations available (this party's roles), both directions
// interleaved tile by tile, booked under Phase::preprocess. Both parties call it with mirrored
// numbers.
void reserve(Party& party, i64 as_sender, i64 as_receiver);

// The same for later use: with a refill it only says what to make and returns.
void announce(Party& party, i64 as_sender, i64 as_receiver);

// Correlations for immediate use; reserves what is missing.
void draw_as_sender(Party& party, crypto::Block* out, i64 count);
void draw_as_receiver(Party& party, crypto::Block* out, i64 count);

}  // namespace privml::ot
