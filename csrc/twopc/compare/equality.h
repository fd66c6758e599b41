// SPDX-License-Identifier: Apache-2.0
// Equality of private numbers, and the test of a shared number for zero.
//
// Functionality  XOR shares of [x0 = x1], or of [x0 + x1 = 0 mod 2^bits], 1 <= bits <= 64.
// Leakage        none beyond length and width. Assumption: correlated OT, correlation-robust hash.
// Method         the number of differing positions, by one private product of bits per position
//                (private_product.h) modulo the least power of two above it; this is zero iff
//                x0 = x1, which 1-of-2^m OTs on the few bits of the count decide. Narrow numbers go
//                to those OTs directly.
// Cost           at most bits + 7 correlations per instance; depth at most 4.
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

namespace privml::twopc {

// Party 0's x against party 1's x.
void equal(ot::Party& party, std::span<const u64> x, int bits, std::span<u8> out);
void cost_equal(ot::CostMeter& meter, i64 n, int bits);

// x: additive shares in Z_{2^bits}.
void equal_zero(ot::Party& party, std::span<const u64> x, int bits, std::span<u8> out);
void cost_equal_zero(ot::CostMeter& meter, i64 n, int bits);

}  // namespace privml::twopc
