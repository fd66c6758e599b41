// SPDX-License-Identifier: Apache-2.0
// 1 / (1 + e^-x) and the hyperbolic tangent.
//
// Functionality  x of the format `in`; y ~ sigmoid(x), tanh(x) in the format `out`, each of 2..32
//                bits with a scale of 0..bits - 2.
// Method         smooth.h: a piecewise polynomial of x, or of min(|x|, T) with tanh(-x) = -tanh(x)
//                and sigmoid(-x) = 1 - sigmoid(x), whichever costs less. The exponential and the
//                quotient of the source's Figure 4 would take about twice the bytes and three times
//                the depth, at twice the error.
// Error          below one unit in the last place; docs/fixed-point-math.md has what is measured.
// Leakage        none beyond length and formats. Assumption: correlated OT, correlation-robust
//                hash.
// Source         after SiRNN (Rathee et al., S&P 2021), section V-B.
// Cost           that of smooth.h.
#pragma once

#include "functions/fixed/format.h"
#include "ot/cost.h"
#include "ot/party.h"

namespace privml {

// Additive shares in Z_{2^in.bits} and Z_{2^out.bits}. Throw InvalidArgument on other formats or
// lengths that differ. The clear functions compute the same numbers, bit for bit.
void sigmoid(Party& party, std::span<const u64> x, FixedFormat in, FixedFormat out,
             std::span<u64> y);
void clear_sigmoid(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y);
void cost_sigmoid(CostMeter& meter, i64 count, FixedFormat in, FixedFormat out);

void tanh(Party& party, std::span<const u64> x, FixedFormat in, FixedFormat out, std::span<u64> y);
void clear_tanh(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y);
void cost_tanh(CostMeter& meter, i64 count, FixedFormat in, FixedFormat out);

}  // namespace privml
