// SPDX-License-Identifier: Apache-2.0
// Numbers of which the parties have shares with one bit too many, whose last bit is of no use.
//
// Functionality  x in Z_{2^(bits + 1)}, 1 <= bits <= 64, as additive shares whose last bits stand
//                apart; shares of floor(x / 2) in Z_{2^bits}.
// Method         with shares 2 h_b + l_b it is h_0 + h_1 + l_0 l_1: the last bits carry if both are
//                set, and each party knows one of them.
// Leakage        none beyond length and width. Assumption: correlated OT, correlation-robust hash.
// Cost           private_product.h: one correlation and bits + 1 bits a number; one exchange.
// Source         as truncate_reduce (width/truncation.h), of which this is the case of one bit.
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

namespace privml::twopc {

// high: h_b, of which only `bits` bits count; last: l_b. Throws InvalidArgument on widths or
// lengths that do not fit.
void drop_last_bit(ot::Party& party, std::span<const u64> high, std::span<const u8> last, int bits,
                   std::span<u64> out);
// The same of shares in one word, for bits up to 63; out may be x.
void drop_last_bit(ot::Party& party, std::span<const u64> x, int bits, std::span<u64> out);
void cost_drop_last_bit(ot::CostMeter& meter, i64 n, int bits);

}  // namespace privml::twopc
