// SPDX-License-Identifier: Apache-2.0
// Extension and truncation of signed numbers of which a bound is known.
//
// Functionality  x in Z_{2^bits} with -bound <= int(x) < bound, 1 <= bound <= 2^(bits-1).
//   extend_bounded     the same number in Z_{2^to}, bits <= to <= 64
//   truncate_bounded   floor(int(x) / 2^shift) in Z_{2^bits}, 0 <= shift < bits
//   round_bounded      floor((int(x) + 2^(shift-1)) / 2^shift), 1 <= shift, at that cost: the sum
//                      need not fit the bound nor the ring
//                For other x the results are wrong: the bound is the caller's promise.
// Method         with MW(x) of signed_wrap.h: x0 + x1 - 2^bits MW over the integers; its shares
//                shifted apart, plus the carry of the low parts. Where MW needs no comparison its
//                products share the first exchange of the carry.
// Leakage        none beyond length, widths and bound. Assumption: correlated OT,
//                correlation-robust hash.
// Cost           signed_wrap.h in to - bits bits; signed_wrap.h in `shift` bits, a comparison of
//                `shift` bits and a conversion.
// Source         Guo et al., "Real-number functions", sections 4 and 5.1.1.
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

namespace privml::twopc {

void extend_bounded(ot::Party& party, std::span<const u64> x, int bits, u64 bound, int to,
                    std::span<u64> out);
void cost_extend_bounded(ot::CostMeter& meter, i64 n, int bits, u64 bound, int to);

void truncate_bounded(ot::Party& party, std::span<const u64> x, int bits, u64 bound, int shift,
                      std::span<u64> out);
void cost_truncate_bounded(ot::CostMeter& meter, i64 n, int bits, u64 bound, int shift);
void round_bounded(ot::Party& party, std::span<const u64> x, int bits, u64 bound, int shift,
                   std::span<u64> out);

}  // namespace privml::twopc
