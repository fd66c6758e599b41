// SPDX-License-Identifier: Apache-2.0
// Squares of shared numbers.
//
// Functionality  x in Z_{2^m}, unsigned or two's complement; out = x^2 mod 2^ell as additive
// shares,
//                m <= ell <= 2 m, for a bounded x (multiplication.h) ell < 2 m.
// Method         with x' = x + a >= 0 and the carry w of its shares: x'^2 is (x'_0 + x'_1)^2 -
//                2^(m+1) w (x'_0 + x'_1) modulo 2^(2m). So there is one cross term, of ell - 1
//                bits, where a product of two numbers has two of ell, and one carry. The offset a
//                is 2^(m-1) for a signed x, 2^(m-2) for a bounded one and 0 for others; for one
//                that is bounded or not negative the carry is one AND.
// Leakage        none beyond length and widths. Assumption: correlated OT, correlation-robust hash.
// Cost           one wrap.h where the carry is no AND and ell > m + 1; m choices and their streams
// of
//                ell - 1 - i bits; a multiplex.h of ell - m - 1 bits. Depth 1 + cross_terms.h's
//                number of pieces after the comparison.
// Source         SiRNN (Rathee et al., S&P 2021), Algorithm 3, for equal factors.
#pragma once

#include "twopc/product/multiplication.h"

namespace privml::twopc {

// Throws InvalidArgument on other widths, formats with a most significant bit that is shared or
// known to be 1, or lengths that differ.
void square(ot::Party& party, std::span<const u64> x, FactorFormat format, int ell,
            std::span<u64> out);
void cost_square(ot::CostMeter& meter, i64 count, FactorFormat format, int ell);

}  // namespace privml::twopc
