// SPDX-License-Identifier: Apache-2.0
// The most significant non-zero bit of a shared number.
//
// Functionality  x in Z_{2^ell} read unsigned; one_hot has its 1 at place floor(log2 x), at place
//                0 for x = 0, as XOR shares.
// Method         in digits: one OT each gives the place of the highest one of the digit's sum of
//                shares, both without and with a carry into it, and what the scans need. One
//                parallel prefix (prefix.h) goes up for the carries; another goes down, at the same
//                time, for whether all higher digits are zero, both without and with a carry into
//                them. The carries then choose in both, and the second chosen keeps the first.
// Leakage        none beyond length and width. Assumption: correlated OT, correlation-robust hash.
// Cost           per digit of d bits d correlations and 2^d (2d + 2) bits (fewer for the lowest and
//                the highest), three triples in each prefix node, one of d + 1 and one of d
//                factors; depth 4 and that of the prefix; d by comparison_plan.h's prices.
// Source         after SiRNN (Rathee et al., S&P 2021), appendix F, Algorithm 7, which waits for
// the
//                carries first, then for the higher digits.
#pragma once

#include <functional>

#include "ot/cost.h"
#include "ot/party.h"
#include "twopc/session/flight.h"

namespace privml::twopc {

// one_hot[k * ell + j] for element k, place j; 1 <= ell <= 64.
void most_significant_nonzero_bit(ot::Party& party, std::span<const u64> x, int ell,
                                  std::span<u8> one_hot);
void cost_most_significant_nonzero_bit(ot::CostMeter& meter, i64 count, int ell);

// The same, with no place set for x = 0. Other messages can share the flights of numbers that make
// up one chunk: `beside` is called in every flight, after its messages are written and before the
// peer's are read, and once when all is read; their correlations are reserved with those of this
// protocol. Of others' flights the cost takes what `next` returns, once in every flight.
void most_significant_nonzero_bit_or_none(ot::Party& party, std::span<const u64> x, int ell,
                                          std::span<u8> one_hot,
                                          const std::function<void()>& beside = {});
void cost_most_significant_nonzero_bit_or_none(ot::CostMeter& meter, i64 count, int ell,
                                               const std::function<Flight()>& next = {});
// Numbers of a chunk, of a party or meter.
i64 nonzero_bit_chunk(int ell, i64 chunk_factor);

// Local: XOR shares of table[place] (up to 64 bits a word) from XOR shares of a one-hot vector;
// table has `size` public entries, one_hot[k * size + j], out[k]. With table[j] = j and
// xor_to_additive() it gives the index.
void one_hot_select(std::span<const u8> one_hot, std::span<const u64> table, std::span<u64> out);

}  // namespace privml::twopc
