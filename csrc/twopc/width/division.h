// SPDX-License-Identifier: Apache-2.0
// Faithful division of shared signed numbers by a public divisor.
//
// Functionality  x in Z_{2^bits} with -bound <= int(x) < bound, 1 <= bound <= 2^(bits-1), 1 <=
//                divisor < 2^(bits-1); floor(int(x) / divisor), rounded towards minus infinity, in
//                Z_{2^bits}. For other x the result is wrong: the bound is the caller's promise.
// Method         x0 and x1 - 2^bits MW are divided apart. The quotient and remainder of the latter
//                are known to party 1 for each of the three values of MW, so one 1-of-4 OT at the
//                place of the shared MW fetches shares of both; one comparison decides whether the
//                remainders together reach the divisor. A power of two is truncate_bounded().
// Leakage        none beyond length, widths, bound and divisor. Assumption: correlated OT,
//                correlation-robust hash.
// Cost           signed_wrap.h in 2 bits; two correlations and 4 (bits + d) bits with d =
//                bitlength(divisor - 1) + 1, in two transfers where bits + d > 64; the sign of a
//                number of d bits and its conversion.
// Source         Guo et al., "Real-number functions", section 5.1, Algorithm 3.
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

namespace privml::twopc {

void divide_bounded(ot::Party& party, std::span<const u64> x, int bits, u64 bound, u64 divisor,
                    std::span<u64> out);
void cost_divide_bounded(ot::CostMeter& meter, i64 n, int bits, u64 bound, u64 divisor);

}  // namespace privml::twopc
