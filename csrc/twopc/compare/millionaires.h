// SPDX-License-Identifier: Apache-2.0
// Comparison of two private numbers.
//
// Functionality  party 0 holds x0, party 1 holds x1, each of `bits` bits (1..64; upper bits of the
//                words are ignored). XOR shares of [x0 > x1].
// Leakage        none beyond length and width. Assumption: correlated OT, correlation-robust hash.
// Source         CrypTFlow2 (Rathee et al., CCS 2020), section 3.1, with equality as in SiRNN
//                (Rathee et al., S&P 2021), appendix B: 1-of-16 OT per digit of 4 bits, then a tree
//                of ANDs, over a slow link of products of three bits as well (bit_chains.h). Half
//                of the instances are sent by each party.
// Cost           per instance `bits` correlations and at most 8 bytes of messages per digit of 4
//                to 6 bits, and per node of the tree one triple and at most 6 bits, per node of
//                three two triples and at most 20 bits; depth 2 + levels of the tree
//                (comparison_plan.h).
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

namespace privml::twopc {

// greater = shares of [x0 > x1]. Throws InvalidArgument for widths outside 1..64 or unequal sizes.
void millionaires(ot::Party& party, std::span<const u64> x, int bits, std::span<u8> greater);
void cost_millionaires(ot::CostMeter& meter, i64 n, int bits);

}  // namespace privml::twopc
