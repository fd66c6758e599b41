// SPDX-License-Identifier: Apache-2.0
// Keys of products place by place that a session's calls have in common: for each set of
// parameters and each of its primes the one that this party owns, and what it has of the peer's.
#pragma once

#include <array>
#include <memory>

#include "lattice/slot_product.h"

namespace privml::twopc {

struct SlotKeyPair {
  std::unique_ptr<lattice::SlotKeyOwner> mine;
  std::unique_ptr<lattice::SlotEvaluator> theirs;
  std::array<i64, 2> uploads{};  // so far, by owner
};

struct SlotKeys {
  lattice::Digest digest{};  // of both parties' nonces
  std::array<std::array<SlotKeyPair, lattice::kMostSlotPrimes>, std::size(lattice::kSlotSets)>
      pairs{};
};

}  // namespace privml::twopc
