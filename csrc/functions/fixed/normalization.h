// SPDX-License-Identifier: Apache-2.0
// A positive number as a power of two times a number in [1, 2).
//
// Functionality  x in Z_{2^bits}, 0 <= x < 2^(bits-1): the one-hot vector of k = floor(log2 x), in
//                bits - 1 places, none for x = 0, as XOR shares; mantissa = x * 2^(bits-2-k) in
//                Z_{2^(bits-1)}: its top bit is 1, the others are the fraction. 0 for x = 0.
// Method         the one-hot vector read as a word is the power of two that x is multiplied by
//                (word_product.h).
// Leakage        none beyond length and width. Assumption: correlated OT, correlation-robust hash.
// Cost           nonzero_bit.h and a word product, both of bits - 1 bits.
// Source         SiRNN (Rathee et al., S&P 2021), Figure 6, steps 1 to 4.
#pragma once

#include <vector>

#include "functions/evaluator/evaluator.h"

namespace privml::fixed {

struct Normalized {
  functions::BitShares one_hot;  // [element * (bits - 1) + place]
  functions::RingShares mantissa;
};

Normalized normalize(functions::Evaluator& evaluator, const functions::RingShares& x, int bits);

// Words by place: local XOR shares of table[k], and of `none` for x = 0.
functions::RingShares select_by_place(functions::Evaluator& evaluator, const Normalized& x,
                                      const std::vector<u64>& table, u64 none);

// In the clear; place is -1 for x = 0.
struct ClearNormalized {
  int place;
  u64 mantissa;
};
ClearNormalized clear_normalize(u64 x, int bits);

}  // namespace privml::fixed
