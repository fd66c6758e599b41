// SPDX-License-Identifier: Apache-2.0
// What separates a function from the lines that it approaches, by the size of its argument.
//
// Functionality  a in Z_{2^in.bits}, 0 <= a <= 2^(in.bits - 1): out ~ tail(a) in Z_{2^out.bits}, at
//                out.scale; tail is a series that is not negative and falls to zero.
// Method         lines on cells of a (piecewise.h) in a ring as small as the tail's largest value;
//                from a power of two on it is zero (exponential_range.h).
// Error          at most kTailError units, which the plan checks for every argument: cells, and
// bits
//                of the coefficients, are the cheapest with which it holds.
// Leakage        none beyond length and formats. Assumption: correlated OT, correlation-robust
// hash. Cost           piecewise.h of degree 1, one truncate_reduce, and the range. Source as
// piecewise.h.
#pragma once

#include <optional>

#include "functions/fixed/exponential_range.h"
#include "functions/fixed/piecewise.h"

namespace privml {

// Of a unit: twice the half that rounding takes, less what a sixteenth allows for the series.
inline constexpr double kTailError = 15.0 / 16;

struct FoldedTail {
  Piecewise table;
  ExponentialRange range;
  int covered;  // bits of the arguments in the table
  int drop;     // bits of its result behind the last place
};

// Nothing if the tail does not end within the arguments, or not within 2^16 of them.
std::optional<FoldedTail> make_folded_tail(Series tail, FixedFormat in, FixedFormat out);

void folded_tail(Party& party, const FoldedTail& f, std::span<const u64> a, std::span<u64> out);
void cost_folded_tail(CostMeter& meter, i64 n, const FoldedTail& f);
u64 clear_folded_tail(const FoldedTail& f, u64 a);

}  // namespace privml
