// SPDX-License-Identifier: Apache-2.0
// Polynomials by pieces around a public place, as parties 0 and 1 pick them; the protocol, its
// leakage and source are in privml/engines/threepc/pieces.py.
#pragma once

#include "base/types.h"

namespace privml::threepc {

constexpr int kMostPieces = 64;
constexpr int kMostCoefficients = 12;

// `coefficients`: one row of `pieces` words for each power; pieces is a power of two. Around a
// place the coefficients lose `powers` bits in every product with it, and those of power i are
// rounded to `dropped` + i bits fewer.
struct PieceTable {
  const u64* coefficients = nullptr;
  int rows = 0, pieces = 0;
  int powers = 0, dropped = 0;
};

// For each of `count` elements: of each piece k the coefficients of its polynomial around
// place / 2^powers, those of odd powers negated, times hot[(index - k) mod pieces]; their sums, in
// out[power * count + element]. hot: count rows of pieces - 1 words, without the first word of
// each, which is `total` minus their sum. Time and memory access depend on index and sizes alone.
// Throws InvalidArgument for a table out of range.
void piece_sums(const PieceTable& table, const u64* index, const u64* place, const u64* hot,
                u64 total, i64 count, u64* out, int threads = 1);

}  // namespace privml::threepc
