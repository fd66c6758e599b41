// SPDX-License-Identifier: Apache-2.0
// From shared bits to ring elements.
//
// Functionality  bits: XOR shares; out: additive shares of the same 0/1 in Z_{2^width}, 1..64.
// Leakage        none beyond length and width. Assumption: correlated OT, correlation-robust hash.
// Source         CrypTFlow2 (Rathee et al., CCS 2020), appendix A.5: b0 + b1 - 2 b0 b1, here for a
//                random bit first; then the difference of the two bits is opened.
// Cost           one correlation, width - 1 bits one way and a bit each way; depth 2, of which the
//                first needs no input. Width 1 is local.
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

namespace privml {

void bits_to_ring(Party& party, std::span<const u8> bits, int width, std::span<u64> out);
void cost_bits_to_ring(CostMeter& meter, i64 n, int width);

}  // namespace privml
