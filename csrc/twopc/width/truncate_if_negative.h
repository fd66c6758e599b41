// SPDX-License-Identifier: Apache-2.0
// A truncated number or zero, by the sign of another number.
//
// Functionality  x in Z_{2^bits}, 1 <= shift < bits <= 64; y in Z_{2^y_bits}: out = floor(x /
//                2^shift) of the unsigned x if y is negative as two's complement, else 0, in
//                Z_{2^(bits-shift)}.
// Method         truncation.h's truncate_reduce, wrap.h's most_significant_bit beside it in the
// same
//                flights, and multiplex.h, whose random bit is compared with the sign when the
//                carry is converted.
// Leakage        none beyond length and widths. Assumption: correlated OT, correlation-robust hash.
// Cost           the sum of the three; depth that of the deeper comparison and two.
// Source         those of the three.
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

namespace privml::twopc {

struct TruncateIfNegative {
  int bits, shift;
  int y_bits;
};

void truncate_if_negative(ot::Party& party, const TruncateIfNegative& shape, std::span<const u64> x,
                          std::span<const u64> y, std::span<u64> out);
void cost_truncate_if_negative(ot::CostMeter& meter, i64 n, const TruncateIfNegative& shape);

}  // namespace privml::twopc
