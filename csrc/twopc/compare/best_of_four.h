// SPDX-License-Identifier: Apache-2.0
// The largest of up to four shared numbers in one round, for links on which messages count for more
// than bytes.
//
// Functionality  candidates in groups of up to four neighbours; the largest of each group, the
//                first of equal ones, with what stands beside it.
// Method         all pairs of a group are compared at once; a candidate wins if it wins all its
//                pairs; the last one takes the difference to the winner. The selections are
//                prepared for random bits while the comparisons run (random_selection.h), the
//                products of three outcomes too (bit_chains.h).
// Leakage        none beyond lengths and width. Assumption: correlated OT, correlation-robust hash.
// Cost           six comparisons, three selections and three products for a group of four; depth
//                that of a comparison and two.
// Source         CrypTFlow2 (Rathee et al., CCS 2020), section 5.2, with all pairs in place of a
//                tree.
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

namespace privml::twopc {

// state[(g * n + i) * length + l]: of candidate g of window i, the number compared and what stands
// beside it, in Z_{2^bits}; afterwards of the winners, in the order of their groups.
struct CandidateShape {
  i64 n = 0;
  i64 candidates = 0;
  i64 length = 1;
  int bits = 64;
};
i64 groups_of_four(i64 candidates);
// Of so many numbers all pairs (a, b), a < b, in this order.
constexpr i64 pairs_in(i64 size) { return size * (size - 1) / 2; }
constexpr i64 pair_at(i64 size, i64 a, i64 b) { return a * (2 * size - a - 1) / 2 + b - a - 1; }
void best_of_four(ot::Party& party, const CandidateShape& shape, std::vector<u64>& state);
void cost_best_of_four(ot::CostMeter& meter, const CandidateShape& shape);

// Whether a window of so many takes less this way than in rounds of pairs.
bool prefers_best_of_four(const ot::Party& party, const CandidateShape& shape);
bool prefers_best_of_four(const ot::CostMeter& meter, const CandidateShape& shape);

}  // namespace privml::twopc
