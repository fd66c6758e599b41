// SPDX-License-Identifier: Apache-2.0
// e^x.
//
// Functionality  exp_negative: x <= 0 of the format `in`; out ~ e^x in the format `out`. A positive
//                x is the caller's error and gives a meaningless value.
//                exp: any x; if e^x is too large for `out`, the exponential of the largest
//                number of `in` for which it is not. Formats of 2..32 bits, scales 0..bits - 2.
// Method         exp: e^x = e^most * e^-(most - x) with words as wide as the output, where `most`
//                is the largest x in range.
// Error          at most 1.5 units in the last place for 16 bits and scales 8..14 (see
//                docs/fixed-point-math.md for what is measured).
// Leakage        none beyond length and formats. Assumption: correlated OT, correlation-robust
//                hash.
// Source         SiRNN (Rathee et al., S&P 2021), section V-A, Figure 3, with rounded tables.
// Cost           negative_exponential.h; exp that can exceed its range extends x and takes a ReLU
// first.
#pragma once

#include "functions/fixed/format.h"
#include "ot/cost.h"
#include "ot/party.h"

namespace privml {

// Additive shares in Z_{2^in.bits} and Z_{2^out.bits}. Throws InvalidArgument on other formats or
// lengths that differ. The clear function computes the same numbers, bit for bit.
void exp_negative(Party& party, std::span<const u64> x, FixedFormat in, FixedFormat out,
                  std::span<u64> y);
void clear_exp_negative(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y);
void cost_exp_negative(CostMeter& meter, i64 count, FixedFormat in, FixedFormat out);

void exp(Party& party, std::span<const u64> x, FixedFormat in, FixedFormat out, std::span<u64> y);
void clear_exp(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y);
void cost_exp(CostMeter& meter, i64 count, FixedFormat in, FixedFormat out);

}  // namespace privml
