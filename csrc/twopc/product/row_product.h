// SPDX-License-Identifier: Apache-2.0
// Products of every row of a matrix with a number of its own.
//
// Functionality  x: rows x length in Z_{2^m}, unsigned or two's complement; y: one number per row
//                in Z_{2^n}, known to be below 2^(n-1); out = x * y mod 2^ell as additive shares,
//                max(m, n) <= ell <= 64.
// Method         x is extended; the wrap of y selects x, once per row; in both cross terms the bits
//                of y's shares are the choices, each of which carries a whole row. The products of
//                bits that extend x and give the wraps travel with the choices; the selection, of
//                random bits until the wraps are opened relative to these, with the last stream.
// Leakage        none beyond shape and widths. Assumption: correlated OT, correlation-robust hash.
// Cost           an extension of x; per row a wrap, a multiplex_vectors of ell - n bits, and 2 n
//                correlations with ell - i bits for each element and bit i. Depth that of
//                vector_products.h, 2 if the stream is short; if no bit of x is known, that of its
//                extension before.
// Source         the matrix form of softmax's division in Guo et al., "Real-number functions",
//                section 5.3.2, after SiRNN (Rathee et al., S&P 2021), appendix D.
#pragma once

#include "twopc/product/multiplication.h"

namespace privml::twopc {

// Throws InvalidArgument on other widths, formats with a shared most significant bit, or lengths
// that do not fit.
void multiply_rows(ot::Party& party, std::span<const u64> x, FactorFormat x_format,
                   std::span<const u64> y, int y_bits, int ell, std::span<u64> out);
void cost_multiply_rows(ot::CostMeter& meter, i64 rows, i64 length, FactorFormat x_format,
                        int y_bits, int ell);

}  // namespace privml::twopc
