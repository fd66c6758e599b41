// SPDX-License-Identifier: Apache-2.0
// A positive number as a power of two times a number in [1, 2).
//
// Functionality  x in Z_{2^bits}, 0 <= x < 2^(bits-1): the one-hot vector of k = floor(log2 x), in
//                bits - 1 places, none for x = 0, as XOR shares; mantissa = x * 2^(bits-2-k) in
//                Z_{2^(bits-1)}: its top bit is 1, the others are the fraction. 0 for x = 0.
//                Then, of words by place, a later number times one and another in a ring.
// Method         the one-hot vector read as a word is the power of two that x is multiplied by.
//                x is known before its place, so the product is one of prepared_line.h whose first
//                flight is that of the place's; its words are opened with those of the later
//                product and of the word that becomes additive. The one-hot vectors of a later
//                lookup are made in the same flights. Numbers of more than one chunk:
//                word_product.h, and nothing is made before.
// Leakage        none beyond length and width. Assumption: correlated OT, correlation-robust hash.
// Cost           nonzero_bit.h and a word product, both of bits - 1 bits; depth one more than
//                that of the first, or that of the lookup's vectors if it is larger. Later a word
//                product of depth 1.
// Source         SiRNN (Rathee et al., S&P 2021), Figure 6, steps 1 to 4.
#pragma once

#include <vector>

#include "functions/evaluator/evaluator.h"
#include "functions/fixed/line_lookup.h"
#include "twopc/product/prepared_line.h"

namespace privml::fixed {

struct Normalized {
  functions::BitShares one_hot;  // [element * (bits - 1) + place]
  functions::RingShares mantissa;
};

Normalized normalize(functions::Evaluator& evaluator, const functions::RingShares& x, int bits);

// Words by place: local XOR shares of table[k], and of `none` for x = 0.
functions::RingShares select_by_place(functions::Evaluator& evaluator, const Normalized& x,
                                      const std::vector<u64>& table, u64 none);
struct PlaceTable {
  std::vector<u64> words;
  u64 none = 0;
};

// What follows: the product with a word of `power` of power_bits bits in Z_{2^ring}; the bits of
// `flag`, unless it is empty, in Z_{2^flag_ring}; a lookup, if there is one.
struct Continuation {
  PlaceTable power = {};
  int power_bits = 0, ring = 64;
  PlaceTable flag = {};
  int flag_ring = 0;
  const LineLookup* lookup = nullptr;
};

struct Continued {
  Normalized number;
  functions::RingShares power, flag;
  twopc::RandomOneHots vectors;
  bool has_vectors = false;
  bool is_open = false;  // the power's bits, in `line`
  twopc::PreparedLine line;
  twopc::LinearShape shape;

  twopc::RandomOneHots* lookup_vectors() { return has_vectors ? &vectors : nullptr; }
};
Continued normalize(functions::Evaluator& evaluator, const functions::RingShares& x, int bits,
                    const Continuation& continuation);
// power * u.
functions::RingShares multiply_by_power(functions::Evaluator& evaluator, Continued& number,
                                        const functions::RingShares& u);

// In the clear; place is -1 for x = 0.
struct ClearNormalized {
  int place;
  u64 mantissa;
};
ClearNormalized clear_normalize(u64 x, int bits);

}  // namespace privml::fixed
