// SPDX-License-Identifier: Apache-2.0
// Local arithmetic on dense matrices of ring elements, row-major.
#pragma once

#include <vector>

#include "twopc/product/cross_terms.h"

namespace privml::twopc {

// The words of a known operand as elements of Z_{2^ell}: sign- or zero-extended, or reduced.
std::vector<u64> ring_elements(std::span<const u64> words, KnownFormat format, int ell);

// The columns x rows transpose of a rows x columns matrix.
std::vector<u64> transposed(std::span<const u64> matrix, i64 rows, i64 columns);
// To `out`, of as many words.
void transpose(std::span<const u64> matrix, i64 rows, i64 columns, std::span<u64> out);

// out = (out + x * y) mod 2^ell for rows x inner and inner x columns matrices.
void add_product(std::span<const u64> x, std::span<const u64> y, const MatrixShape& shape, int ell,
                 std::span<u64> out);

}  // namespace privml::twopc
