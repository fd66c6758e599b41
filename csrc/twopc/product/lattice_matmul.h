// SPDX-License-Identifier: Apache-2.0
// Matrix products with weights that one party knows, by lattice-based encryption.
//
// Functionality  out = x * y mod 2^ell as additive shares, as matmul.h, one operand being owned by
// a
//                party: the weights; the other one is shared, or owned by the other party.
//   lattice_matmul   with nothing prepared
//   prepare_matmul   shares of r * weights for random r that the client knows, before x is there
//   prepared_matmul  uses up rows of what was prepared: the client sends x - r, so that the owner
//   of
//                    the weights computes (x - r) * weights and the client nothing
// Leakage        none beyond shapes, formats and label. Assumption: ciphertext_product.h. A row of
//                r masks one row of x and is gone before the message is written.
// Cost           lattice_matmul and prepare_matmul: ciphertext_product.h for each block of n rows
// of
//                the operand that is not the weights (n = 4096: fewer cost as many bytes of c1
//                down, and nearly as much work). prepared_matmul: rows * inner numbers of ell bits
//                in one message.
// Source         Mishra et al., Delphi (USENIX Security 2020), for correlations of fixed weights.
#pragma once

#include <optional>

#include "lattice/parameters.h"
#include "ot/cost.h"
#include "ot/party.h"
#include "twopc/product/prepared_product.h"

namespace privml {

// The parameters for weights of that format; none where no set serves, so that another protocol is
// needed.
std::optional<lattice::ColumnChoice> lattice_choice(i64 inner, Operand weights, int ell,
                                                    lattice::Noise noise = lattice::Noise::tail);

// Throws InvalidArgument where lattice_choice() has none, where no operand or both are owned by one
// party, and on widths or shapes that do not fit.
void expect_lattice_matmul(Operand x_format, Operand y_format, const MatrixShape& shape, int ell,
                           lattice::Noise noise);

// x: rows x inner, y: inner x columns, out: rows x columns, row-major. Throws as above, and where
// lengths do not fit.
void lattice_matmul(Party& party, Operand x_format, std::span<const u64> x, Operand y_format,
                    std::span<const u64> y, const MatrixShape& shape, int ell, std::span<u64> out,
                    lattice::Noise noise = lattice::Noise::tail);
void cost_lattice_matmul(CostMeter& meter, Operand x_format, Operand y_format,
                         const MatrixShape& shape, int ell,
                         lattice::Noise noise = lattice::Noise::tail);

// Weights: inner x columns at their owner, empty at the client. shape.rows are those of all
// products to come. Booked under Phase::preprocess.
PreparedProduct prepare_matmul(Party& party, Operand format, std::span<const u64> weights,
                               const MatrixShape& shape, int ell, Bytes label = {},
                               lattice::Noise noise = lattice::Noise::tail);
void cost_prepare_matmul(CostMeter& meter, Operand format, const MatrixShape& shape, int ell,
                         lattice::Noise noise = lattice::Noise::tail);

// Uses up all of `prepared`, a party's half, before it sends anything. x: its rows x inner, shared
// or owned by the client; weights as at the preparation (InvalidArgument where they differ).
void prepared_matmul(Party& party, PreparedProduct prepared, Operand x_format,
                     std::span<const u64> x, Operand format, std::span<const u64> weights,
                     std::span<u64> out);
void cost_prepared_matmul(CostMeter& meter, int owner, i64 rows, i64 inner, int ell);

}  // namespace privml
