// SPDX-License-Identifier: Apache-2.0
// The high and the low part of a shared number, the low one in a larger ring.
//
// Functionality  x in Z_{2^bits}, 0 < shift < bits <= 64: high = bits shift..bits-1 of x in
//                Z_{2^(bits-shift)}, low = x mod 2^shift in Z_{2^low_bits}, shift <= low_bits
//                <= 64.
// Method         truncate_reduce, whose carry out of the low part is also what extends that part.
// Leakage        none beyond length and widths. Assumption: correlated OT, correlation-robust hash.
// Cost           truncation.h's truncate_reduce with the carry converted to max(bits, low_bits) -
//                shift bits.
// Source         SiRNN (Rathee et al., S&P 2021), section IV, Algorithms 1 and 2.
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

namespace privml::twopc {

void split_number(ot::Party& party, std::span<const u64> x, int bits, int shift, int low_bits,
                  std::span<u64> high, std::span<u64> low);
void cost_split_number(ot::CostMeter& meter, i64 n, int bits, int shift, int low_bits);

}  // namespace privml::twopc
