// SPDX-License-Identifier: Apache-2.0
// From a small ring to a larger one.
//
// Functionality  x in Z_{2^from}; out = the same number in Z_{2^to}, 1 <= from <= to <= 64, read as
//                unsigned (zero_extend) or two's complement (sign_extend). extend_nonnegative is
//                for values known to lie below 2^(from-1), where both agree, and much cheaper.
// Leakage        none beyond length and widths. Assumption: correlated OT, correlation-robust hash.
// Source         SiRNN (Rathee et al., S&P 2021), section IV, Algorithm 1 and "MSB-to-wrap".
// Cost           the wrap bit of `from` bits (wrap.h) and its conversion to to - from bits.
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

namespace privml {

void zero_extend(Party& party, std::span<const u64> x, int from, int to, std::span<u64> out);
void sign_extend(Party& party, std::span<const u64> x, int from, int to, std::span<u64> out);
void cost_extend(CostMeter& meter, i64 n, int from, int to);

void extend_nonnegative(Party& party, std::span<const u64> x, int from, int to, std::span<u64> out);
void cost_extend_nonnegative(CostMeter& meter, i64 n, int from, int to);

}  // namespace privml
