// SPDX-License-Identifier: Apache-2.0
// The sign of a shared number.
//
// Functionality  x: additive shares in Z_{2^bits}, 1 <= bits <= 64. XOR shares of the most
//                significant bit, that is [x < 0] in two's complement (DReLU is its complement).
// Leakage        none beyond length and width. Assumption: correlated OT, correlation-robust hash.
// Source         CrypTFlow2 (Rathee et al., CCS 2020), section 4.1: msb(x0) ^ msb(x1) ^ carry of
//                the low bits - 1 bits.
// Cost           wrap of bits - 1 bits; none for bits = 1.
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

namespace privml {

void most_significant_bit(Party& party, std::span<const u64> x, int bits, std::span<u8> msb);
void cost_most_significant_bit(CostMeter& meter, i64 n, int bits);

}  // namespace privml
