// SPDX-License-Identifier: Apache-2.0
// The larger of shared numbers in two's complement.
//
// Functionality  additive shares in Z_{2^bits}, 2 <= bits <= 64, of values with
//                |value| < 2^(bits-2), so that differences keep their sign.
// Leakage        none beyond shapes and width. Assumption: correlated OT, correlation-robust hash.
// Source         CrypTFlow2 (Rathee et al., CCS 2020), section 5.2; here as a tournament, so the
//                depth is logarithmic in the window: max(a, b) = b + relu(a - b). Over slow links
//                four at once (best_of_four.h) where no one_hot is asked.
// Cost           a window of w values: w - 1 ReLUs; with one_hot or index, more per node.
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

namespace privml::twopc {

// out = max(a, b), elementwise.
void maximum(ot::Party& party, std::span<const u64> a, std::span<const u64> b, int bits,
             std::span<u64> out);
void cost_maximum(ot::CostMeter& meter, i64 n, int bits);

// x: n windows of `window` >= 1 consecutive values; out: n maxima.
void maximum_windows(ot::Party& party, std::span<const u64> x, i64 window, int bits,
                     std::span<u64> out);
void cost_maximum_windows(ot::CostMeter& meter, i64 n, i64 window, int bits);

// Also one_hot: n windows of XOR-shared bits, 1 at the maximum; the first of equal values wins.
void maximum_windows_one_hot(ot::Party& party, std::span<const u64> x, i64 window, int bits,
                             std::span<u64> out, std::span<u8> one_hot);
void cost_maximum_windows_one_hot(ot::CostMeter& meter, i64 n, i64 window, int bits);

// x: n rows of `columns` values; index: the column of each row's maximum (the first of equal ones)
// as additive shares in Z_{2^bits}. `bits` must hold columns - 1.
void argmax(ot::Party& party, std::span<const u64> x, i64 columns, int bits, std::span<u64> index);
void cost_argmax(ot::CostMeter& meter, i64 n, i64 columns, int bits);

}  // namespace privml::twopc
