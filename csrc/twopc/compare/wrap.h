// SPDX-License-Identifier: Apache-2.0
// The carry out of a shared sum, and the sign of a shared number.
//
// Functionality  x: additive shares x0, x1 in Z_{2^bits}, 1 <= bits <= 64. XOR shares of
//                w = [x0 + x1 >= 2^bits] (sum over the integers), and if asked of
//                e = [x0 + x1 mod 2^bits = 2^bits - 1].
//                most_significant_bit: that of x, [x < 0] in two's complement (DReLU is its
//                complement).
// Leakage        none beyond length and width. Assumption: correlated OT, correlation-robust hash.
// Source         SiRNN (Rathee et al., S&P 2021), sections III-E, IV and appendix B; the variants
//                with a known most significant bit: section IV, "MSB-to-wrap". The most significant
//                bit: CrypTFlow2 (Rathee et al., CCS 2020), section 4.1, msb(x0) ^ msb(x1) ^ carry
//                of the low bits - 1 bits.
// Cost           as millionaires.h; known MSB: one private AND; shared MSB: two;
//                most_significant_bit: wrap of bits - 1 bits, none for bits = 1.
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

namespace privml::twopc {

void wrap(ot::Party& party, std::span<const u64> x, int bits, std::span<u8> w);
void cost_wrap(ot::CostMeter& meter, i64 n, int bits);

void wrap_with_all_ones(ot::Party& party, std::span<const u64> x, int bits, std::span<u8> w,
                        std::span<u8> all_ones);
void cost_wrap_with_all_ones(ot::CostMeter& meter, i64 n, int bits);

// For values whose most significant bit is publicly known to be `msb` (0 or 1).
void wrap_known_msb(ot::Party& party, std::span<const u64> x, int bits, u8 msb, std::span<u8> w);
void cost_wrap_known_msb(ot::CostMeter& meter, i64 n);

// For values whose most significant bit is already XOR-shared.
void wrap_shared_msb(ot::Party& party, std::span<const u64> x, int bits, std::span<const u8> msb,
                     std::span<u8> w);
void cost_wrap_shared_msb(ot::CostMeter& meter, i64 n);

void most_significant_bit(ot::Party& party, std::span<const u64> x, int bits, std::span<u8> msb);
void cost_most_significant_bit(ot::CostMeter& meter, i64 n, int bits);

}  // namespace privml::twopc
