// SPDX-License-Identifier: Apache-2.0
// Maximum pooling, ReLU and the truncation behind them.
//
// Functionality  windows of w >= 1 numbers in Z_{2^bits} with |value| < 2^(bits-2);
//                floor(max(0, largest) / 2^shift) in Z_{2^out_bits}, 1 <= shift < bits; larger
//                results lose their high bits.
// Method         maximum.h, then truncate_by_sign.h. Over slow links, for few windows of up to four
//                numbers, at once: every number's sign and carry and all pairs are compared in the
//                same flights; a number is taken if it is not negative and wins all its pairs, and
//                its quotient is selected by that (quotient.h).
// Leakage        none beyond lengths and widths. Assumption: correlated OT, correlation-robust
// hash. Cost           at once: a window's pairs, and a split comparison, a conversion and a
// selection for
//                each of its numbers; depth that of truncate_rectified and two, of windows of two
//                one.
// Source         CrypTFlow2 (Rathee et al., CCS 2020), section 5; SiRNN (Rathee et al., S&P 2021),
//                section IV.
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

namespace privml::twopc {

struct RectifiedMaximum {
  i64 window = 1;
  int bits = 64, shift = 1;
  int out_bits = 64;
};

// x: windows one after the other; out: one number for each.
void rectified_maximum(ot::Party& party, const RectifiedMaximum& shape, std::span<const u64> x,
                       std::span<u64> out);
void cost_rectified_maximum(ot::CostMeter& meter, i64 n, const RectifiedMaximum& shape);

}  // namespace privml::twopc
