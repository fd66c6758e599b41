// SPDX-License-Identifier: Apache-2.0
// Several comparisons in the same flights, and what else travels with their levels.
#pragma once

#include <span>
#include <vector>

#include "twopc/compare/comparison.h"

namespace privml::twopc {

inline int levels_of(const ComparisonPlan& plan) {
  return static_cast<int>(std::ssize(plan.levels));
}
int levels_of(std::span<const Comparison> all);

// The carry into the sign of a number of `bits` bits and that of its low `shift` bits, which are
// the same carry if only the sign is left of it.
ComparisonShape sign_and_carry(int bits, int shift);
// After so many levels the answer for the low `split` bits, or for all without a split, is known.
int levels_to_low(const ComparisonShape& shape, const ComparisonPlan& plan);
std::span<const u8> low_answer(const ComparisonShape& shape, const Comparison& finished);

// Reads the first flight of all, then exchanges the leaves.
void exchange_leaves(ot::Party& party, std::span<Comparison> all);

// So many exchanges; the first ones carry the levels. write(k) and read(k) add to exchange k.
template <class Write, class Read>
void exchange_levels(ot::Party& party, std::span<Comparison> all, int exchanges, Write&& write,
                     Read&& read) {
  for (int k = 0; k < exchanges; ++k) {
    std::vector<PendingLevel> pending(all.size());
    for (std::size_t c = 0; c < all.size(); ++c)
      if (k < levels_of(all[c].plan)) write_level(party, all[c], k, pending[c]);
    write(k);
    for (std::size_t c = 0; c < all.size(); ++c)
      if (k < levels_of(all[c].plan)) read_level(party, all[c], pending[c]);
    read(k);
  }
}

// A comparison of n instances.
struct CountedShape {
  ComparisonShape shape;
  i64 n;
};
int levels_of(const ot::CostMeter& meter, std::span<const CountedShape> all);
// All of it; `first` is sent beside the first flight, more[k] in exchange k.
void cost_together(ot::CostMeter& meter, std::span<const CountedShape> all, Flight first,
                   std::vector<Flight> more);

}  // namespace privml::twopc
