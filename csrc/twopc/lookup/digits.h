// SPDX-License-Identifier: Apache-2.0
// Digits of a shared number.
//
// Functionality  x in Z_{2^ell}; digit j (0 = least significant) of `digit_bits` bits, the top one
//                shorter where digit_bits does not divide ell, each shared additively modulo its
//                own size.
// Method         wrap and all-ones of every digit, then all carries by a parallel prefix
//                (prefix.h) where the paper has a chain.
// Leakage        none beyond length and widths. Assumption: correlated OT, correlation-robust
//                hash.
// Cost           wrap.h with all-ones per digit but the top one, boolean.h per node of the prefix
//                network, conversion.h per carry.
// Source         SiRNN (Rathee et al., S&P 2021), appendix E, Algorithm 6.
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

namespace privml::twopc {

constexpr i64 digit_count(int ell, int digit_bits) { return ceil_div(ell, digit_bits); }

// XOR shares of the carry of x_0 + x_1 into digits 1, 2, ...: carries[(j - 1) * n + k] for element
// k, (digit_count - 1) * n bits. 1 <= ell <= 64, 1 <= digit_bits <= 64.
void digit_carries(ot::Party& party, std::span<const u64> x, int ell, int digit_bits,
                   std::span<u8> carries);
void cost_digit_carries(ot::CostMeter& meter, i64 count, int ell, int digit_bits);

// out[j * n + k] = digit j of element k, digit_count * n words.
void digits(ot::Party& party, std::span<const u64> x, int ell, int digit_bits, std::span<u64> out);
void cost_digits(ot::CostMeter& meter, i64 count, int ell, int digit_bits);

}  // namespace privml::twopc
