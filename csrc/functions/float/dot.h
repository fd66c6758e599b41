// SPDX-License-Identifier: Apache-2.0
// Fused dot products: what is computed before and after an integer product.
//
// Functionality  align      the signed integers v * 2^(q + guard - e - shift), towards zero, in
//                           Z_{2^bits}, of numbers v with exponents e; shifts >= 0, shared in
//                           Z_{2^(p+2)}; bits >= q + guard + 2
//                from_sum   sum * 2^(exponent - fraction) for sums in two's complement of
//                Z_{2^bits}
//                           and exponents shared in Z_{2^(p+2)}, where exponent - fraction fits
//                           too; rounded to nearest, ties to even; q + 3 <= bits <= 64
//                both as clear_dot.h computes them, for up to 29 mantissa and guard bits together.
// Error          with one shift base t_i for all elements of a block, t_i >= their exponents, the
//                sum of n products of aligned numbers of blocks i and j, taken as
//                2^(t_i + t_j - 2 (q + guard)), differs from the sum of the products by less than
//                4 n 2^(t_i + t_j - q - guard): either factor is below 2^(t + 1) and loses less
//                than 2^(t - q - guard). from_sum then rounds once.
// Method         align: the mantissa shifted left by q + guard - shift in 2q + 2 + guard bits
//                (addition.h), its low q bits cut off, extended by its known top bit, signed and
//                taken out if the shift exceeds q + guard. from_sum: the sign, the magnitude,
//                normalize() of addition.h, and rounding.h.
// Leakage        none beyond lengths, widths and format. Assumption: correlated OT,
//                correlation-robust hash.
// Cost           align: a comparison of p + 1 bits, a lookup, 3 selections of 2q + 2 + guard bits
//                per base-4 digit of the shift, a comparison of q bits, two selections of `bits`
//                bits. from_sum: a comparison and a nonzero_bit.h of `bits` bits, 3 selections of
//                `bits` bits per base-4 digit of the place, rounding.h.
// Source         the sum is not in SecFloat (Rathee et al., S&P 2022); its steps are those of
//                Figures 3 and 5. Block floating point: Wilkinson, Rounding Errors in Algebraic
//                Processes (1963).
#pragma once

#include "functions/float/addition.h"

namespace privml::floating {

// Of numbers and shifts; of sums and exponents.
Operation<functions::RingShares, FloatShares, functions::RingShares> float_align(FloatFormat f,
                                                                                 int guard,
                                                                                 int bits);
Operation<FloatShares, functions::RingShares, functions::RingShares> float_from_sum(FloatFormat f,
                                                                                    int bits,
                                                                                    int fraction);

}  // namespace privml::floating
