// SPDX-License-Identifier: Apache-2.0
// A fixed-point function is written once for an Evaluator; here it runs on whole arrays, chunk by
// chunk, and counts its cost.
#pragma once

#include "functions/evaluator/evaluator.h"
#include "functions/fixed/format.h"

namespace privml::fixed {

// Elements per chunk: memory stays bounded, and a batch takes few rounds.
inline constexpr i64 kFunctionChunk = i64{1} << 16;

// Additive shares in Z_{2^in.bits} to such in Z_{2^out.bits}.
using FixedFunction = functions::RingShares (*)(functions::Evaluator&,
                                                const functions::RingShares& x, FixedFormat in,
                                                FixedFormat out);

// Throw InvalidArgument on formats that the function does not have or lengths that differ.
void evaluate_function(ot::Party& party, FixedFunction function, std::span<const u64> x,
                       FixedFormat in, FixedFormat out, std::span<u64> y);
void cost_function(ot::CostMeter& meter, FixedFunction function, i64 count, FixedFormat in,
                   FixedFormat out);

}  // namespace privml::fixed
