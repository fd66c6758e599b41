// SPDX-License-Identifier: Apache-2.0
// The largest of several candidates, and its index.
//
// Functionality  x[j * n + i] is candidate j of group i, `count` >= 1 candidates each: maximum[i],
//                and index[i] or one_hot[j * n + i]; of equal candidates the last counts. Signed
//                numbers of `width` bits whose differences stay below 2^(width-1), as within
//                2^(width-2).
// Method         a tournament of ceil(log2(count)) rounds; each match is a comparison and products.
// Leakage        none. Cost: per match a less-than, a bit as a number and one product; in all but
//                the first round one more for the index, or one per candidate for the one-hot row.
// Source         "New primitives", Fig. 16.
#pragma once

#include "spdz2k/shares/cost.h"
#include "spdz2k/shares/session.h"

namespace privml::spdz2k {

// The form of the winner that is computed besides the maximum.
enum class Winner { none, index, one_hot };

// `winner` is as long as maximum for an index, as x for one-hot rows, else empty. Throws
// InvalidArgument if lengths differ.
template <class R>
void maximum(Session<R>& session, WordView<R> x, i64 count, int width, WordSpan<R> maximum,
             Winner kind = Winner::none, WordSpan<R> winner = {});
template <class R>
void cost_maximum(CostMeter& meter, i64 n, i64 count, int width, Winner kind = Winner::none);

}  // namespace privml::spdz2k
