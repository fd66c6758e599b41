// SPDX-License-Identifier: Apache-2.0
// A function of one small private number of each party.
//
// Functionality  XOR shares of entry(party 0's digit, party 1's digit) of `width` bits, 64 a
//                multiple of width, for digits of m bits that each party holds in the clear.
// Leakage        none beyond length, m and width. Assumption: correlated OT, correlation-robust
//                hash.
// Cost           two_way_transfer.h
#pragma once

#include "functions/float/evaluator.h"

namespace privml {

using PairEntry = u64 (*)(int digit0, int digit1);
RingShares pair_table(Evaluator& evaluator, const BitShares& digits, int m, int width,
                      PairEntry entry);

}  // namespace privml
