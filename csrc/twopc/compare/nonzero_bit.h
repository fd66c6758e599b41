// SPDX-License-Identifier: Apache-2.0
// The most significant non-zero bit of a shared number.
//
// Functionality  x in Z_{2^ell} read unsigned; one_hot has its 1 at place floor(log2 x), at place
//                0 for x = 0, as XOR shares.
// Method         in digits of 4 bits: each digit's one-hot comes out of one OT on (share of the
//                digit, share of its carry) and is kept where all higher digits are zero; place 0
//                is the complement of all others.
// Leakage        none beyond length and width. Assumption: correlated OT, correlation-robust hash.
// Cost           per digit its carry (digits.h), 5 correlations and 128 bits, one AND in the
//                prefix network and one of 4 bits; depth logarithmic in ell.
// Source         after SiRNN (Rathee et al., S&P 2021), appendix F, Algorithm 7.
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

namespace privml::twopc {

// one_hot[k * ell + j] for element k, place j; 1 <= ell <= 64.
void most_significant_nonzero_bit(ot::Party& party, std::span<const u64> x, int ell,
                                  std::span<u8> one_hot);
void cost_most_significant_nonzero_bit(ot::CostMeter& meter, i64 count, int ell);

// The same, with no place set for x = 0.
void most_significant_nonzero_bit_or_none(ot::Party& party, std::span<const u64> x, int ell,
                                          std::span<u8> one_hot);

// Local: XOR shares of table[place] (up to 64 bits a word) from XOR shares of a one-hot vector;
// table has `size` public entries, one_hot[k * size + j], out[k]. With table[j] = j and
// xor_to_additive() it gives the index.
void one_hot_select(std::span<const u8> one_hot, std::span<const u64> table, std::span<u64> out);

}  // namespace privml::twopc
