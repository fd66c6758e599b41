// SPDX-License-Identifier: Apache-2.0
// Table entries chosen by the high part of a shared number, and its low part in a larger ring.
//
// Functionality  x in Z_{2^(index_bits + place_bits)}, 1 <= index_bits <= 10, 1 <= place_bits:
//                for each table, XOR shares of table[floor(x / 2^place_bits)]; low = x mod
//                2^place_bits in Z_{2^low_bits}, place_bits <= low_bits <= 64.
// Method         split.h, beside which the one-hot vectors of one_hot.h are made in the same
//                flights, unless they were made before; then the high part is opened relative to
//                them. Over slow links split.h by table_carry.h. Where correlations cost more than
//                messages: split.h, then lookup.h for each table.
// Leakage        none beyond lengths and widths. Assumption: correlated OT, correlation-robust
//                hash.
// Cost           the sum of both; depth that of split.h (of the vectors, if these take longer) and
//                one.
// Source         those of the two.
#pragma once

#include <functional>

#include "ot/cost.h"
#include "ot/party.h"
#include "twopc/lookup/one_hot.h"

namespace privml::twopc {

struct SplitLookupShape {
  int index_bits, place_bits, low_bits;
  std::span<const int> widths;  // of the tables' entries, 1..64
};

// tables[t] has 2^index_bits entries, found[t] and low are as long as x.
void split_lookup(ot::Party& party, const SplitLookupShape& shape,
                  std::span<const std::span<const u64>> tables, std::span<const u64> x,
                  std::span<const std::span<u64>> found, std::span<u64> low);
void cost_split_lookup(ot::CostMeter& meter, i64 n, const SplitLookupShape& shape);

// Whether the one-hot vectors are the form that is taken; then numbers that make up one chunk, two
// of them or more, can share the flight that opens their places, when `low` is there, and have
// vectors that were made before. The correlations of all are reserved together.
bool looks_up_by_one_hots(const SplitLookupShape& shape, double correlation_bits);
struct BesideOpening {
  RandomOneHots* vectors = nullptr;
  std::function<void()> write = [] {}, read = [] {};
};
void split_lookup_beside(ot::Party& party, const SplitLookupShape& shape,
                         std::span<const std::span<const u64>> tables, std::span<const u64> x,
                         std::span<const std::span<u64>> found, std::span<u64> low,
                         const BesideOpening& beside);
void cost_split_lookup_beside(ot::CostMeter& meter, i64 n, const SplitLookupShape& shape,
                              bool has_vectors, Flight opening);

}  // namespace privml::twopc
