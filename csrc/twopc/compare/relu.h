// SPDX-License-Identifier: Apache-2.0
// max(x, 0) of shared numbers in two's complement.
//
// Functionality  x: additive shares in Z_{2^bits}, 1 <= bits <= 64; out = x where x >= 0, else 0.
// Leakage        none beyond length and width. Assumption: correlated OT, correlation-robust hash.
// Source         CrypTFlow2 (Rathee et al., CCS 2020), section 5.1: the sign selects; the
//                selector's first message travels with the comparison's.
// Cost           most_significant_bit and multiplex, one hop less deep.
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

namespace privml::twopc {

void relu(ot::Party& party, std::span<const u64> x, int bits, std::span<u64> out);
// Also nonnegative = XOR shares of [x >= 0], at no further cost.
void relu(ot::Party& party, std::span<const u64> x, int bits, std::span<u64> out,
          std::span<u8> nonnegative);
void cost_relu(ot::CostMeter& meter, i64 n, int bits);

}  // namespace privml::twopc
