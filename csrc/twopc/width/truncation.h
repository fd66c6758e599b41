// SPDX-License-Identifier: Apache-2.0
// Faithful division of shared numbers by powers of two.
//
// Functionality  x in Z_{2^bits}, 1 <= bits <= 64, 0 <= shift < bits.
//   truncate_logical      floor(x / 2^shift) of the unsigned x, in Z_{2^bits}
//   truncate_arithmetic   floor(x / 2^shift) of the two's complement x, in Z_{2^bits}
//   truncate_nonnegative  either, for values known to lie below 2^(bits-1); cheaper
//   round_nonnegative     floor((x + 2^(shift-1)) / 2^shift) for such values, 1 <= shift, at that
//                         cost: the sum need not fit the ring
//   truncate_reduce       bits shift..bits-1 of x, in Z_{2^(bits-shift)}; cheaper
//   divide_power_of_two   the two's complement quotient rounded towards zero, in Z_{2^bits}
// Leakage        none beyond length and widths. Assumption: correlated OT, correlation-robust hash.
// Source         SiRNN (Rathee et al., S&P 2021), section IV, Algorithm 2 and appendix C, here with
//                both carries from one tree, and both conversions in one exchange.
// Cost           logical and arithmetic: a split comparison of `bits` bits and conversions of its
//                two bits (to `bits` and `shift` bits); nonnegative: a comparison of `shift` bits,
//                one conversion and one private product; reduce: a comparison of `shift` bits and
//                one conversion. Conversions add one hop to a comparison's depth. Quotient: the
//                most significant bit, a comparison with equality of `shift` bits, known_msb.h's
//                carry, an AND, two conversions.
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

namespace privml {

void truncate_logical(Party& party, std::span<const u64> x, int bits, int shift,
                      std::span<u64> out);
void truncate_arithmetic(Party& party, std::span<const u64> x, int bits, int shift,
                         std::span<u64> out);
void cost_truncate(CostMeter& meter, i64 n, int bits, int shift);

void truncate_nonnegative(Party& party, std::span<const u64> x, int bits, int shift,
                          std::span<u64> out);
void cost_truncate_nonnegative(CostMeter& meter, i64 n, int bits, int shift);
void round_nonnegative(Party& party, std::span<const u64> x, int bits, int shift,
                       std::span<u64> out);

void truncate_reduce(Party& party, std::span<const u64> x, int bits, int shift, std::span<u64> out);
void cost_truncate_reduce(CostMeter& meter, i64 n, int bits, int shift);

void divide_power_of_two(Party& party, std::span<const u64> x, int bits, int shift,
                         std::span<u64> out);
void cost_divide_power_of_two(CostMeter& meter, i64 n, int bits, int shift);

}  // namespace privml
