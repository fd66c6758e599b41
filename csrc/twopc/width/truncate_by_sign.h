// SPDX-License-Identifier: Apache-2.0
// A truncated number or zero, by its own sign or by that of another number.
//
// Functionality  x in Z_{2^bits}, 1 <= shift < bits <= 64.
//   truncate_rectified     floor(max(x, 0) / 2^shift) of the two's complement x, in Z_{2^out_bits},
//                          1 <= out_bits <= 64; larger results lose their high bits
//   truncate_if_negative   y in Z_{2^y_bits}: floor(x / 2^shift) of the unsigned x if y is negative
//                          as two's complement, else 0, in Z_{2^(bits-shift)}; or in a ring of
//                          `wider` more bits, if every x of a negative y is known to be below
//                          2^(bits-1). For other x the result is wrong there: it is the caller's
//                          promise.
// Method         truncation.h's truncate_reduce, beside it in the same flights wrap.h's
//                most_significant_bit, and multiplex.h, whose random bit is compared with the sign.
//                The carry is converted as soon as it is known. The sign of x itself and the carry
//                of its low bits come from one tree of digits. The carry of all of x, in a wider
//                ring, follows from the top bits of its shares by private_product.h, in the first
//                flight.
// Leakage        none beyond length and widths. Assumption: correlated OT, correlation-robust hash.
// Cost           the sum of the three, of truncate_rectified with one comparison; depth that of the
//                deeper comparison and two, or one if the carry is known before the sign. A wider
//                ring: a private product and 3 * wider bits, no message in a row.
// Source         those of the parts; SiRNN (Rathee et al., S&P 2021), section IV-E, "MSB-to-wrap".
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

namespace privml::twopc {

void truncate_rectified(ot::Party& party, std::span<const u64> x, int bits, int shift, int out_bits,
                        std::span<u64> out);
void cost_truncate_rectified(ot::CostMeter& meter, i64 n, int bits, int shift, int out_bits);

struct TruncateIfNegative {
  int bits, shift;
  int y_bits;
  int wider = 0;
};

void truncate_if_negative(ot::Party& party, const TruncateIfNegative& shape, std::span<const u64> x,
                          std::span<const u64> y, std::span<u64> out);
void cost_truncate_if_negative(ot::CostMeter& meter, i64 n, const TruncateIfNegative& shape);

}  // namespace privml::twopc
