// SPDX-License-Identifier: Apache-2.0
// Functions that approach straight lines on both sides: erf, GELU, SiLU, softplus.
//
// Functionality  erf(x); gelu(x) = x Phi(x), exactly, not by tanh; silu(x) = x / (1 + e^-x);
//                softplus(x) = ln(1 + e^x). Formats of up to 32 bits on both sides; the result must
//                fit the output format.
// Method         if the input's range is short, one piecewise polynomial of x (piecewise.h).
//                Otherwise |x| from one ReLU, its part below the place T where the function meets
//                its lines from another, and a piecewise polynomial of that: gelu(x) = relu(x) -
//                d(|x|), silu and softplus likewise; erf is odd. The cheaper form is taken.
// Accuracy       below one unit in the last place; see docs/fixed-point-math.md.
// Leakage        none beyond length and formats. Assumption: correlated OT, correlation-robust
//                hash.
// Cost           that of piecewise.h and one truncate_reduce; the long form also two relus.
// Source         after SiRNN (Rathee et al., S&P 2021), section V, whose recipe for sigmoid this
//                replaces by tables of polynomials.
#pragma once

#include "functions/fixed/format.h"
#include "ot/cost.h"
#include "ot/party.h"

namespace privml {

void erf(Party& party, std::span<const u64> x, FixedFormat in, FixedFormat out, std::span<u64> y);
void clear_erf(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y);
void cost_erf(CostMeter& meter, i64 count, FixedFormat in, FixedFormat out);

void gelu(Party& party, std::span<const u64> x, FixedFormat in, FixedFormat out, std::span<u64> y);
void clear_gelu(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y);
void cost_gelu(CostMeter& meter, i64 count, FixedFormat in, FixedFormat out);

void silu(Party& party, std::span<const u64> x, FixedFormat in, FixedFormat out, std::span<u64> y);
void clear_silu(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y);
void cost_silu(CostMeter& meter, i64 count, FixedFormat in, FixedFormat out);

void softplus(Party& party, std::span<const u64> x, FixedFormat in, FixedFormat out,
              std::span<u64> y);
void clear_softplus(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y);
void cost_softplus(CostMeter& meter, i64 count, FixedFormat in, FixedFormat out);

}  // namespace privml
