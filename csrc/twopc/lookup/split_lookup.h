// SPDX-License-Identifier: Apache-2.0
// Table entries chosen by the high part of a shared number, and its low part in a larger ring.
//
// Functionality  x in Z_{2^(index_bits + place_bits)}, 1 <= index_bits <= 10, 1 <= place_bits:
//                for each table, XOR shares of table[floor(x / 2^place_bits)]; low = x mod
//                2^place_bits in Z_{2^low_bits}, place_bits <= low_bits <= 64.
// Method         split.h, beside which the one-hot vectors of one_hot.h are made in the same
//                flights; then the high part is opened relative to them. Where correlations cost
//                more than messages: split.h, then lookup.h for each table.
// Leakage        none beyond lengths and widths. Assumption: correlated OT, correlation-robust
//                hash.
// Cost           the sum of both; depth that of split.h (of the vectors, if these take longer) and
//                one.
// Source         those of the two.
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

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

}  // namespace privml::twopc
