// SPDX-License-Identifier: Apache-2.0
// Products of matrices of shared values.
//
// Functionality  out = a * b mod 2^k for n pairs of matrices, rows x inner and inner x columns, one
//                pair after the other, each matrix row by row. out overlaps neither.
// Method         large products are cut into parts (kMostRows and so on), the factors of a part
//                opened under the masks of a matrix triple, once per entry; small ones, below
//                kLeastProducts, are sums of single products. If rows outnumber columns the
//                transposes are multiplied, since triples cost most per entry of the left factor.
// Leakage        none: what is opened is masked by the triple.
// Cost           per part rows * inner + inner * columns words of k bits, a matrix triple and, for
//                at most kOpenedAtOnce words, an exchange; small ones as multiply.h.
// Source         Beaver's triples (Crypto 1991) for matrices: Mohassel, Zhang, "SecureML" (S&P
//                2017), section IV.
#pragma once

#include "spdz2k/shares/side.h"

namespace privml::spdz2k {

inline constexpr i64 kLeastProducts = 256;
// Of the triples' shapes: bounds of memory. The entries of a factor are opened again for every
// part of the result's rows or columns.
inline constexpr i64 kMostRows = 256, kMostColumns = 1024;
inline constexpr i64 kMostEntries = i64{1} << 19;  // of the right factor
inline constexpr i64 kOpenedAtOnce = i64{1} << 18;

// Throws InvalidArgument if the lengths do not fit the shape.
template <class R>
void multiply_matrices(Side<R> side, WordView<R> a, WordView<R> b, MatrixShape shape, i64 n,
                       WordSpan<R> out);

}  // namespace privml::spdz2k
