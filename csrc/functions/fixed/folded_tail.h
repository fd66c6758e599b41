// SPDX-License-Identifier: Apache-2.0
// What separates a function from the lines that it approaches, by the size of its argument.
//
// Functionality  x in Z_{2^in.bits}, two's complement: out ~ tail(|x|) in Z_{2^out.bits}, at
//                out.scale; tail is a series that is not negative and falls to zero.
// Method         a continuous function, linear on cells of |x| (folded_piecewise), in a ring as
//                small as the tail's largest value; from a power of two on it is zero
//                (exponential_range.h), unless all arguments are below.
// Error          at most kTailError units, which the plan checks for every argument: cells, and
//                bits of the coefficients, are the cheapest with which it holds.
// Leakage        none beyond length and formats. Assumption: correlated OT, correlation-robust
//                hash.
// Cost           folded_lookup.h, a product, and the range.
// Source         that of piecewise.h.
#pragma once

#include <optional>

#include "functions/fixed/exponential_range.h"
#include "functions/fixed/piecewise.h"

namespace privml::fixed {

// Of a unit: twice the half that rounding takes, less what a sixteenth allows for the series.
inline constexpr double kTailError = 15.0 / 16;

struct FoldedTail {
  Piecewise table;
  ExponentialRange range;  // of the number of the cell
  int covered;             // bits of the arguments in the table
  int drop;                // bits of its result behind the last place
};

// Nothing if more than 2^16 arguments would be in the table.
std::optional<FoldedTail> make_folded_tail(Series tail, FixedFormat in, FixedFormat out);

struct FoldedValue {
  functions::RingShares tail, positive;  // positive: max(x, 0) in Z_{2^in.bits}
  functions::BitShares nonnegative;      // XOR shares of [x >= 0]
};
FoldedValue folded_tail(functions::Evaluator& evaluator, const FoldedTail& f,
                        const functions::RingShares& x);
u64 clear_folded_tail(const FoldedTail& f, i64 x);

}  // namespace privml::fixed
