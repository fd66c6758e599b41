// SPDX-License-Identifier: Apache-2.0
// Matrix products of shared and owned matrices.
//
// Functionality  out = x * y mod 2^ell as additive shares. A shared operand has bits == ell
//                (extend narrower shares first); an owned operand has 1 <= bits <= ell and is read
//                as its sign says.
// Method         shared x shared: two cross terms; owned x shared, or owned by different parties:
//                one; owned by one party: none. The rest is local.
// Leakage        none beyond shapes, widths and placement. Assumption: correlated OT,
//                correlation-robust hash.
// Cost           as vector_products.h.
// Source         SiRNN (Rathee et al., S&P 2021), appendix D, Algorithm 5, without its wraps,
//                which vanish in one ring.
#pragma once

#include "twopc/product/cross_terms.h"
#include "twopc/product/operand.h"

namespace privml::twopc {

// x: rows x inner, y: inner x columns, out: rows x columns, row-major. `side` names the operand
// whose bits are the choices of every cross term. Throws InvalidArgument on widths or lengths that
// do not fit.
void matmul(ot::Party& party, Operand x_format, std::span<const u64> x, Operand y_format,
            std::span<const u64> y, const MatrixShape& shape, int ell, std::span<u64> out,
            ChoiceSide side = ChoiceSide::automatic);
void cost_matmul(ot::CostMeter& meter, Operand x_format, Operand y_format, const MatrixShape& shape,
                 int ell, ChoiceSide side = ChoiceSide::automatic);

}  // namespace privml::twopc
