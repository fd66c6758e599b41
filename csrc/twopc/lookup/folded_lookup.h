// SPDX-License-Identifier: Apache-2.0
// Table entries at the magnitude of a shared number, with all that follows from its sign.
//
// Functionality  x in Z_{2^bits}, two's complement; 1 <= place_bits, 1 <= index_bits <= 10,
//                place_bits + index_bits < bits: |x| = high * 2^place_bits + low with 0 <= low <
//                2^place_bits for x >= 0 and 0 < low <= 2^place_bits for x < 0; for each table XOR
//                shares of table[high mod 2^index_bits]; high in Z_{2^(bits-place_bits)}, low in
//                Z_{2^low_bits}, max(x, 0) in Z_{2^bits}, XOR shares of [x >= 0].
// Method         one comparison gives the carry out of the low part and the sign; with x = h
//                2^place_bits + u, high is h or -h - 1 and low is u or 2^place_bits - u, by
//                selections of h and u (random_selection.h). The one-hot vectors of one_hot.h are
//                made in the same flights, or, where correlations cost more than messages,
//                lookup.h follows.
// Leakage        none beyond lengths and widths. Assumption: correlated OT, correlation-robust
//                hash.
// Cost           the sum of these; depth that of the comparison and three.
// Source         those of the parts.
#pragma once

#include "ot/cost.h"
#include "ot/party.h"
#include "twopc/lookup/split_lookup.h"

namespace privml::twopc {

struct FoldedLookupShape {
  int bits, index_bits, place_bits, low_bits;
  std::span<const int> widths;  // of the tables' entries, 1..64
};

// Each as long as x.
struct FoldedNumber {
  std::span<const std::span<u64>> found;  // of the tables, in order
  std::span<u64> high, low, positive;
  std::span<u8> nonnegative;
};

// tables[t] has 2^index_bits entries.
void folded_lookup(ot::Party& party, const FoldedLookupShape& shape,
                   std::span<const std::span<const u64>> tables, std::span<const u64> x,
                   const FoldedNumber& out);
void cost_folded_lookup(ot::CostMeter& meter, i64 n, const FoldedLookupShape& shape);

// As in split_lookup.h, without vectors that were made before.
bool looks_up_by_one_hots(const FoldedLookupShape& shape, double correlation_bits);
void folded_lookup_beside(ot::Party& party, const FoldedLookupShape& shape,
                          std::span<const std::span<const u64>> tables, std::span<const u64> x,
                          const FoldedNumber& out, const BesideOpening& beside);
void cost_folded_lookup_beside(ot::CostMeter& meter, i64 n, const FoldedLookupShape& shape,
                               Flight opening);

}  // namespace privml::twopc
