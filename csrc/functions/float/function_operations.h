// SPDX-License-Identifier: Apache-2.0
// Operations that the functions use besides those of evaluator.h. The headers of twopc named here
// give functionality, leakage and cost.
#pragma once

#include <utility>

#include "functions/float/shares.h"

namespace privml::floating {

// lookup.h: several tables of 2^index_bits XOR-shared words at one place, of which the low bits
// count.
struct WordTable {
  std::span<const u64> words;
  int width;
};
std::vector<functions::RingShares> lookup_words(functions::Evaluator& evaluator,
                                                std::span<const WordTable> tables,
                                                const functions::RingShares& index, int index_bits);

// multiplication.h: floor(x y / 2^shift) in Z_{2^ell}.
functions::RingShares multiply_and_cut(functions::Evaluator& evaluator,
                                       const functions::RingShares& x, twopc::FactorFormat x_format,
                                       const functions::RingShares& y, twopc::FactorFormat y_format,
                                       int ell, int shift);

// Local: bit `place` of XOR-shared words; bits [place, place + bits) of them.
functions::BitShares bit_at(const functions::Evaluator& evaluator,
                            const functions::RingShares& words, int place);
functions::RingShares field_at(const functions::Evaluator& evaluator,
                               const functions::RingShares& words, int place, int bits);

// a & !b.
functions::BitShares without(functions::Evaluator& evaluator, const functions::BitShares& a,
                             const functions::BitShares& b);

}  // namespace privml::floating
