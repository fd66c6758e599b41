// SPDX-License-Identifier: Apache-2.0
// Operations that the functions use besides those of evaluator.h. The headers of twopc named here
// give functionality, leakage and cost.
#pragma once

#include <utility>

#include "functions/float/evaluator.h"

namespace privml {

// lookup.h: several tables of 2^index_bits XOR-shared words at one place, of which the low bits
// count.
struct WordTable {
  std::span<const u64> words;
  int width;
};
std::vector<RingShares> lookup_words(Evaluator& evaluator, std::span<const WordTable> tables,
                                     const RingShares& index, int index_bits);

// multiplication.h: floor(x y / 2^shift) in Z_{2^ell}.
RingShares multiply_and_cut(Evaluator& evaluator, const RingShares& x, FactorFormat x_format,
                            const RingShares& y, FactorFormat y_format, int ell, int shift);

// Local: bit `place` of XOR-shared words; bits [place, place + bits) of them.
BitShares bit_at(const Evaluator& evaluator, const RingShares& words, int place);
RingShares field_at(const Evaluator& evaluator, const RingShares& words, int place, int bits);

// a & !b.
BitShares without(Evaluator& evaluator, const BitShares& a, const BitShares& b);

}  // namespace privml
