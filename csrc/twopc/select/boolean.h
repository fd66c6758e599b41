// SPDX-License-Identifier: Apache-2.0
// Products of shared bits. XOR and NOT are local: one party flips its share.
//
// Functionality  a, b: XOR-shared bits, 0/1 per byte.
// Leakage        none beyond length. Assumption: correlated OT, correlation-robust hash.
// Source         Beaver's triples (Crypto 1991), made from random correlated OT (derive.h).
// Cost           and_bits: one triple and 4 bits, one exchange. and_private: one correlation, 2
//                bits, one exchange.
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

namespace privml::twopc {

// out[i] = a[i] & b[i].
void and_bits(ot::Party& party, std::span<const u8> a, std::span<const u8> b, std::span<u8> out);
// out[i] = a[i] | b[i].
void or_bits(ot::Party& party, std::span<const u8> a, std::span<const u8> b, std::span<u8> out);
void cost_and_bits(ot::CostMeter& meter, i64 n);

// One operand for several: out[i] = a[i] ? b[i] : 0 for strings b of `width` bits, 1 <= width <= 8.
void and_strings(ot::Party& party, std::span<const u8> a, std::span<const u8> b, int width,
                 std::span<u8> out);
void cost_and_strings(ot::CostMeter& meter, i64 n, int width);

// Shares of x0[i] & x1[i], where x0 is known to party 0 and x1 to party 1.
void and_private(ot::Party& party, std::span<const u8> x, std::span<u8> out);
void cost_and_private(ot::CostMeter& meter, i64 n);

}  // namespace privml::twopc
