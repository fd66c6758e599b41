// SPDX-License-Identifier: Apache-2.0
// 1 / (1 + e^-x) and the hyperbolic tangent.
//
// Functionality  x of the format `in`; y ~ sigmoid(x), tanh(x) in the format `out`, each of 2..32
//                bits with a scale of 0..bits - 2. tanh is odd and sigmoid(-x) = 1 - sigmoid(x),
//                exactly (but for the least number of `in`).
// Method         u = e^-|x| (decay.h) and r = 1 / (1 + u) - 1/2 (unit_reciprocal.h); then
//                sigmoid = 1/2 +- r. tanh(x) = (1 - u) / (1 + u) = 2 (1 / (1 + u) - 1/2) with
//                u = e^-2|x|, and r computed with one more bit than the output has, so that its
//                error is not doubled and the product of the quotient is saved.
// Error          at most 3 units in the last place (sigmoid), 3 (tanh) for 16 bits and
// scales 8..14;
//                docs/fixed-point-math.md has what is measured.
// Leakage        none beyond length and formats. Assumption: correlated OT, correlation-robust
// hash. Source         SiRNN (Rathee et al., S&P 2021), section V-B, Figures 4 and 5, with u below
// 1, so
//                that x = 0 needs no case of its own.
// Cost           relu.h, decay.h, unit_reciprocal.h, multiplex.h.
#pragma once

#include "fixmath/format.h"
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
