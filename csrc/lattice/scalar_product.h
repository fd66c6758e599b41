// SPDX-License-Identifier: Apache-2.0
// Matrices of small integers times matrices of words modulo 2^(64 + low_bits).
//
// Functionality  out(i, j) = sum over k of weights(i, k) in(k, j), row-major.
// Method         the sums of the low bits are exact integers, whose upper parts go to the sums of
//                the high words modulo 2^64.
// Leakage        none: time and memory access depend on shapes and on the bound of the weights.
#pragma once

#include "lattice/words.h"
#include "linear/kernels.h"

namespace privml::lattice {

// weights: rows x inner words, signed, of at most `largest` in absolute value, inner * largest
// below 2^47; in: inner x columns; out: rows x columns.
void multiply_scalars(std::span<const u64> weights, i64 rows, i64 inner, u64 largest, WordsView in,
                      i64 columns, int low_bits, WordsOutput out);

}  // namespace privml::lattice
