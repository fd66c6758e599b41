// SPDX-License-Identifier: Apache-2.0
// Equality of private numbers, and the test of a shared number for zero.
//
// Functionality  XOR shares of [x0 = x1], or of [x0 + x1 = 0 mod 2^bits], 1 <= bits <= 64.
// Leakage        none beyond length and width. Assumption: correlated OT, correlation-robust hash.
// Method         the Hamming distance of x0 and x1 by one additive correlated OT per bit, modulo
//                the least power of two above `bits`; this is zero iff x0 = x1, which one 1-of-2^m
//                OT of m <= 7 bits decides. Widths up to 7 go to that OT directly.
// Cost           at most bits + 7 correlations per instance; depth 4 (2 for widths up to 7).
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

namespace privml {

// Party 0's x against party 1's x.
void equal(Party& party, std::span<const u64> x, int bits, std::span<u8> out);
void cost_equal(CostMeter& meter, i64 n, int bits);

// x: additive shares in Z_{2^bits}.
void equal_zero(Party& party, std::span<const u64> x, int bits, std::span<u8> out);
void cost_equal_zero(CostMeter& meter, i64 n, int bits);

}  // namespace privml
