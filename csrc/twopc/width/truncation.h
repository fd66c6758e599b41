// SPDX-License-Identifier: Apache-2.0
// Faithful division of shared numbers by powers of two.
//
// Functionality  x in Z_{2^bits}, 1 <= bits <= 64, 0 <= shift < bits.
//   truncate_arithmetic   floor(x / 2^shift) of the two's complement x, in Z_{2^bits}
//   truncate_nonnegative  the same, for values known to lie below 2^(bits-1); cheaper
//   round_nonnegative     floor((x + 2^(shift-1)) / 2^shift) for such values, 1 <= shift, at that
//                         cost: the sum need not fit the ring
//   truncate_reduce       bits shift..bits-1 of x, in Z_{2^(bits-shift)}; cheaper
// Leakage        none beyond length and widths. Assumption: correlated OT, correlation-robust hash.
// Source         SiRNN (Rathee et al., S&P 2021), section IV, Algorithm 2 and appendix C, here with
//                both carries from one tree, and both conversions in one exchange.
// Cost           arithmetic: a split comparison of `bits` bits and conversions of its
//                two bits (to `bits` and `shift` bits); nonnegative: a comparison of `shift` bits,
//                one conversion and one private product; reduce: a comparison of `shift` bits and
//                one conversion. Conversions add one hop to a comparison's depth.
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

namespace privml::twopc {

void truncate_arithmetic(ot::Party& party, std::span<const u64> x, int bits, int shift,
                         std::span<u64> out);
void cost_truncate(ot::CostMeter& meter, i64 n, int bits, int shift);

void truncate_nonnegative(ot::Party& party, std::span<const u64> x, int bits, int shift,
                          std::span<u64> out);
void cost_truncate_nonnegative(ot::CostMeter& meter, i64 n, int bits, int shift);
void round_nonnegative(ot::Party& party, std::span<const u64> x, int bits, int shift,
                       std::span<u64> out);

void truncate_reduce(ot::Party& party, std::span<const u64> x, int bits, int shift,
                     std::span<u64> out);
void cost_truncate_reduce(ot::CostMeter& meter, i64 n, int bits, int shift);

}  // namespace privml::twopc
