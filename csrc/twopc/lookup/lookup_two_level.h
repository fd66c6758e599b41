// SPDX-License-Identifier: Apache-2.0
// The two-level form of lookup(): far fewer messages than one transfer of the whole table.
//
// Functionality  out = XOR shares of table[index], index = index_0 + index_1 mod 2^(row_bits +
//                column_bits).
// Method         the low digits of both shares add up to s < 2^(column_bits + 1) - 1; one
//                1-of-2^column_bits OT gives XOR shares of the one-hot vector of s. Each party
//                applies its share to the public table: column[h] = XOR over s of one_hot[s] &
//                table[h * 2^column_bits + s], so that the column's entry at h, the sum of the
//                high digits, is the result. Both parties' columns are looked up at h, one
//                1-of-2^row_bits OT each way.
// Leakage        none beyond length and widths. Assumption: correlated OT, correlation-robust
//                hash.
// Cost           column_bits + 2 row_bits correlations, 2^column_bits * (2^(column_bits + 1) - 1)
//                and 2 * 2^row_bits * width bits; depth 3.
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

namespace privml::twopc {

struct LookupLevels {
  int row_bits;
  int column_bits;  // at most 5
};

// The split of index_bits with the fewest bits on the wire, and those bits per element, where a
// correlation costs `correlation_bits`.
LookupLevels best_levels(int index_bits, int width, double correlation_bits);
double two_level_bits(LookupLevels levels, int width, double correlation_bits);

struct LevelLookup {
  std::span<const u64> table, index;
  LookupLevels levels;
  int width;
  std::span<u64> out;
};

// Several lookups of as many elements each, whose messages share flights.
void lookup_two_level(ot::Party& party, std::span<const LevelLookup> lookups);

struct LevelShape {
  LookupLevels levels;
  int width;
};
void cost_lookup_two_level(ot::CostMeter& meter, i64 count, std::span<const LevelShape> shapes);

}  // namespace privml::twopc
