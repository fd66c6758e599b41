// SPDX-License-Identifier: Apache-2.0
// Steps of the functions: see steps.h; functionality, leakage and cost stand in the headers of
// twopc named here.
#pragma once

#include <utility>

#include "secfloat/steps.h"

namespace privml {

// lookup.h: several tables of 2^index_bits XOR-shared words at one place, of which the low bits
// count.
struct WordTable {
  std::span<const u64> words;
  int width;
};
std::vector<RingShares> lookup_words(Steps& steps, std::span<const WordTable> tables,
                                     const RingShares& index, int index_bits);

// multiplication.h: floor(x y / 2^shift) in Z_{2^ell}.
RingShares multiply_and_cut(Steps& steps, const RingShares& x, FactorFormat x_format,
                            const RingShares& y, FactorFormat y_format, int ell, int shift);

// Local: bit `place` of XOR-shared words; bits [place, place + bits) of them.
BitShares bit_at(const Steps& steps, const RingShares& words, int place);
RingShares field_at(const Steps& steps, const RingShares& words, int place, int bits);

// a & !b.
BitShares without(Steps& steps, const BitShares& a, const BitShares& b);

}  // namespace privml
