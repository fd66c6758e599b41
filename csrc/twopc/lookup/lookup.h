// SPDX-License-Identifier: Apache-2.0
// Public tables at shared places, and plain 1-of-2^m transfers.
//
// Functionality  table has 2^index_bits entries of `width` bits, 1 <= index_bits <= 10, 1 <=
//                width <= 64; the index is shared in Z_{2^index_bits}; out = table[index], additive
//                in Z_{2^width} or XOR-shared.
// Method         the table, rotated by one share and masked, in one 1-of-2^m OT, in which each
// party
//                sends for half of the elements; or the form of lookup_two_level.h or one_hot.h:
//                what takes fewest bits with the session's correlations, their work and the depth
//                counted as in comparison_plan.h.
// Leakage        none beyond lengths and widths. Assumption: correlated OT, correlation-robust
//                hash.
// Cost           direct: index_bits correlations and 2^index_bits * width bits, depth 2.
// Source         SiRNN (Rathee et al., S&P 2021), section III-E; Dessouky et al. (NDSS 2017).
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

namespace privml::twopc {

// Throws InvalidArgument unless table has 2^index_bits entries and out as many as index.
void lookup(ot::Party& party, std::span<const u64> table, std::span<const u64> index,
            int index_bits, int width, std::span<u64> out);
void cost_lookup(ot::CostMeter& meter, i64 count, int index_bits, int width);

// The same with XOR-shared output words.
void lookup_xor(ot::Party& party, std::span<const u64> table, std::span<const u64> index,
                int index_bits, int width, std::span<u64> out);
void cost_lookup_xor(ot::CostMeter& meter, i64 count, int index_bits, int width);

// Several of them at places of their own, as many each: those of two levels share their flights.
struct TableLookup {
  std::span<const u64> table, index;
  int index_bits;
  int width;
  std::span<u64> out;
};
struct TableShape {
  int index_bits;
  int width;
};
void lookups_xor(ot::Party& party, std::span<const TableLookup> lookups);
void cost_lookups_xor(ot::CostMeter& meter, i64 count, std::span<const TableShape> shapes);

// Several tables at one place: found[t] = XOR shares of tables[t][index], entries of widths[t]
// bits.
void lookup_tables_xor(ot::Party& party, int index_bits, std::span<const int> widths,
                       std::span<const std::span<const u64>> tables, std::span<const u64> index,
                       std::span<const std::span<u64>> found);
void cost_lookup_tables_xor(ot::CostMeter& meter, i64 n, int index_bits,
                            std::span<const int> widths);

// Whether vectors of one_hot.h that other messages' flights can take along are the cheapest form
// for tables of these widths.
bool prefers_one_hot(int index_bits, std::span<const int> widths, double correlation_bits);

// Plain OT: `sender` (0 or 1) has messages[i * 2^index_bits + j] of `width` bits, the other party
// choices[i]; it gets messages[i * 2^index_bits + choices[i]], the sender nothing.
void transfer_one_of_n_send(ot::Party& party, std::span<const u64> messages, int index_bits,
                            int width);
void transfer_one_of_n_receive(ot::Party& party, std::span<const u8> choices, int index_bits,
                               int width, std::span<u64> out);
void cost_transfer_one_of_n(ot::CostMeter& meter, int sender, i64 count, int index_bits, int width);

}  // namespace privml::twopc
