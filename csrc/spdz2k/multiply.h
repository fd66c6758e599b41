// SPDX-License-Identifier: Apache-2.0
// Products of shared values.
//
// Functionality  multiply: out[i] = x[i] * y[i]; square: out[i] = x[i]^2; multiply_matrices: out =
//                a * b for a of rows x inner and b of inner x columns, row by row; all mod 2^k. out
//                may be an input of the first two.
// Leakage        none: what is opened is masked by the triple.
// Cost           per product 2 words of k bits and one triple, per square 1 word and one square,
//                per element of a and of b in every product of a matrix as multiply; one exchange
//                per kProducts products.
// Source         Beaver's triples (Crypto 1991) on SPDZ2k shares.
#pragma once

#include "spdz2k/cost.h"
#include "spdz2k/session.h"

namespace privml::spdz2k {

// Products that are made at once, so that memory stays bounded.
inline constexpr i64 kProducts = i64{1} << 17;

// Throws InvalidArgument where lengths differ.
template <class R>
void multiply(Session<R>& session, WordView<R> x, WordView<R> y, WordSpan<R> out);
template <class R>
void cost_multiply(CostMeter& meter, i64 n);

template <class R>
void square(Session<R>& session, WordView<R> x, WordSpan<R> out);
template <class R>
void cost_square(CostMeter& meter, i64 n);

struct MatrixShape {
  i64 rows, inner, columns;
};

template <class R>
void multiply_matrices(Session<R>& session, WordView<R> a, WordView<R> b, MatrixShape shape,
                       WordSpan<R> out);
template <class R>
void cost_multiply_matrices(CostMeter& meter, MatrixShape shape);

}  // namespace privml::spdz2k
