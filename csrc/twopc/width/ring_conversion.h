// SPDX-License-Identifier: Apache-2.0
// The wrap of a number in a small ring, of which a larger ring's shares are at hand.
//
// Functionality  x in Z_{2^from} with -2^(bits-1) <= int(x) < 2^(bits-1), bits + 1 <= from <= 64;
//                with z the low `bits` bits of each share, shares of MW(z) in Z_{2^width}: int(x) =
//                z0 + z1 - 2^bits MW(z) over the integers. For other x the result is wrong: the
//                bound is the caller's promise.
// Method         y, the low bits + 1 bits of each share, lies within a quarter of its ring, and so
//                does y^ whose shares have 2^bits added; MW(z) = MW(y) + MW(y^) - 1, a product of
//                two bits each, in one exchange.
// Leakage        none beyond length and widths. Assumption: correlated OT, correlation-robust hash.
// Cost           two products of private_product.h, depth 1.
// Source         Guo et al., "Real-number functions", section 4.3, Lemma 3, Theorem 2, Algorithm 2.
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

namespace privml {

void converted_wrap(Party& party, std::span<const u64> x, int from, int bits, int width,
                    std::span<u64> out);
void cost_converted_wrap(CostMeter& meter, i64 n, int width);

}  // namespace privml
