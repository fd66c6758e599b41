// SPDX-License-Identifier: Apache-2.0
// The carry out of the low bits of a shared sum, in a ring.
//
// Functionality  x: additive shares x0, x1; out: additive shares in Z_{2^width} of
//                [x0 + x1 >= 2^bits] for their low `bits` bits.
// Method         a comparison, beside which the conversion is prepared; or table_carry.h over slow
//                links, where messages count for more.
// Leakage        none beyond length and widths. Assumption: correlated OT, correlation-robust hash.
// Source         those of comparison.h, random_selection.h and table_carry.h.
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

namespace privml::twopc {

// One chunk.
void carry_to_ring(ot::Party& party, std::span<const u64> x, int bits, int width,
                   std::span<u64> out);
void cost_carry_to_ring(ot::CostMeter& meter, i64 n, int bits, int width);

}  // namespace privml::twopc
