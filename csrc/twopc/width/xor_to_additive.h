// SPDX-License-Identifier: Apache-2.0
// From XOR-shared words to additive shares.
//
// Functionality  z = z_0 ^ z_1 of `width` bits (1..64); out = z in Z_{2^width} as additive shares.
//                z and out must not overlap.
// Method         a ^ b = a + b - 2ab per bit: one correlated OT of width - 1 - i bits for bit i;
//                the top bit is local. Each party sends for half of the words.
// Leakage        none beyond length and width. Assumption: correlated OT, correlation-robust hash.
// Cost           width - 1 correlations and width * (width - 1) / 2 bits per word; depth 2.
// Source         CrypTFlow2 (Rathee et al., CCS 2020), appendix A.5, applied to every bit.
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

namespace privml {

void xor_to_additive(Party& party, std::span<const u64> z, int width, std::span<u64> out);
void cost_xor_to_additive(CostMeter& meter, i64 count, int width);

}  // namespace privml
