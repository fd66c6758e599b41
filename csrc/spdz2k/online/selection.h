// SPDX-License-Identifier: Apache-2.0
// Choices by shared bits: select, ReLU, and the largest of several candidates with its index.
//
// Functionality  select: out[i] = choice[i] ? x[i] : y[i], for choices that are 0 or 1 as numbers;
//                relu: out[i] = x[i] if x[i] >= 0 as a signed number of `width` bits, else 0.
//                maximum: x[j * n + i] is candidate j of group i, `count` >= 1 candidates each:
//                maximum[i], and index[i] or one_hot[j * n + i]; of equal candidates the last
//                counts. Signed numbers of `width` bits whose differences stay below 2^(width-1),
//                as within 2^(width-2).
// Method         maximum: a tournament of ceil(log2(count)) rounds; each match is a comparison and
//                products.
// Leakage        none. Cost: select, one product; relu, one most significant bit, one bit as a
//                number and one product; maximum, per match a less-than, a bit as a number and one
//                product, in all but the first round one more for the index, or one per candidate
//                for the one-hot row.
// Source         maximum: "New primitives", Fig. 16.
#pragma once

#include "spdz2k/shares/side.h"

namespace privml::spdz2k {

// All throw InvalidArgument if lengths differ. out may be an input of select and relu.
template <class R>
void select(Side<R> side, WordView<R> choice, WordView<R> x, WordView<R> y, WordSpan<R> out);

// 1 <= width <= k.
template <class R>
void relu(Side<R> side, WordView<R> x, int width, WordSpan<R> out);

// The form of the winner that is computed besides the maximum.
enum class Winner { none, index, one_hot };

// `winner` is as long as maximum for an index, as x for one-hot rows, else empty.
template <class R>
void maximum(Side<R> side, WordView<R> x, i64 count, int width, WordSpan<R> maximum,
             Winner kind = Winner::none, WordSpan<R> winner = {});

}  // namespace privml::spdz2k
