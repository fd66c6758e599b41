// SPDX-License-Identifier: Apache-2.0
// From XOR shares to additive shares: of bits and of words.
//
// Functionality  bits_to_ring: XOR shares of bits; out: additive shares of the same 0/1 in
//                Z_{2^width}, 1..64.
//                xor_to_additive: z = z_0 ^ z_1 of `width` bits (1..64); out = z in Z_{2^width}. z
//                and out must not overlap.
// Method         a ^ b = a + b - 2ab. Bits: for a random bit first, then the difference of the two
//                bits is opened. Words: one correlated OT of width - 1 - i bits for bit i; the top
//                bit is local. Each party sends for half of them.
// Leakage        none beyond length and width. Assumption: correlated OT, correlation-robust hash.
// Cost           a bit: one correlation, width - 1 bits one way and a bit each way; depth 2, of
//                which the first needs no input. Width 1 is local. A word: width - 1 correlations
//                and width * (width - 1) / 2 bits; depth 2.
// Source         CrypTFlow2 (Rathee et al., CCS 2020), appendix A.5.
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

namespace privml::twopc {

void bits_to_ring(ot::Party& party, std::span<const u8> bits, int width, std::span<u64> out);
void cost_bits_to_ring(ot::CostMeter& meter, i64 n, int width);

void xor_to_additive(ot::Party& party, std::span<const u64> z, int width, std::span<u64> out);
void cost_xor_to_additive(ot::CostMeter& meter, i64 count, int width);

}  // namespace privml::twopc
