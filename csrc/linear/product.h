// SPDX-License-Identifier: Apache-2.0
// Matrix products mod 2^bits, blocked for the caches and tiled for the registers.
//
// Functionality  out(i, j) = (out(i, j) + sum over k of a(i, k) * b(k, j)) mod 2^bits.
// Method         blocks of a and panels of b are packed once per use, sums of a tile stay in
//                registers; words of 32 bits up to bits = 32, of 64 above. Where that wastes fewer
//                lanes, the transposed product is computed.
// Leakage        none: time and memory access depend on shapes and strides alone.
// Source         K. Goto, R. van de Geijn, Anatomy of high-performance matrix multiplication
//                (TOMS 2008); F. Van Zee, R. van de Geijn, BLIS (TOMS 2015).
#pragma once

#include "linear/kernels.h"
#include "linear/packing.h"

namespace privml::linear {

// a is rows x inner, b inner x columns: a.column and b.row have one length, as out.row and a.row,
// out.column and b.column; without an inner dimension out stays as it is. No two elements of out
// share a word. 1 <= bits <= 64; at most `threads` threads, fewer for small products. Throws
// InvalidArgument if that does not hold.
void add_product(const IndexedMatrix& a, const IndexedMatrix& b, int bits, IndexedOutput out,
                 int threads = 1, Backend backend = best_backend());

}  // namespace privml::linear
