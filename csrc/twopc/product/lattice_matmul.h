// SPDX-License-Identifier: Apache-2.0
// Matrix products with weights that one party knows, by lattice-based encryption.
//
// Functionality  out = x * y mod 2^ell as additive shares, as matmul.h, one operand being owned by
//                a party: the weights; the other one is shared, or owned by the other party.
//   lattice_matmul   with nothing prepared
//   prepare_matmul   shares of r * weights for random r that the client knows, before x is there
//   prepared_matmul  uses up rows of what was prepared: the client sends x - r, so that the owner
//                    of the weights computes (x - r) * weights and the client nothing
//                The first two take halves (matmul_halves) that serve further products of the same
//                weights, which cost less.
// Leakage        none beyond shapes, formats and label. Assumption: ciphertext_product.h. A row of
//                r masks one row of x and is gone before the message is written.
// Cost           lattice_matmul and prepare_matmul: ciphertext_product.h for each block of n rows
//                of the operand that is not the weights (n = 4096). prepared_matmul: 16 bytes and
//                rows * inner numbers of ell bits in one message.
// Source         Mishra et al., Delphi (USENIX Security 2020), for correlations of fixed weights.
#pragma once

#include <optional>

#include "twopc/product/ciphertext_product.h"
#include "twopc/product/prepared_product.h"

namespace privml::twopc {

// The parameters for weights of that format; none if no set serves, so that another protocol is
// needed.
std::optional<lattice::ColumnChoice> lattice_choice(i64 inner, Operand weights, int ell,
                                                    lattice::Noise noise = lattice::Noise::tail);

// What a party keeps for products x * weights, weights of inner x columns; nothing is sent. Both
// parties pass one label. Throws InvalidArgument if lattice_choice() has none.
ProductHalves matmul_halves(const OwnedWeights& weights, i64 inner, i64 columns, int ell,
                            Bytes label = {}, lattice::Noise noise = lattice::Noise::tail);

// x: rows x inner, shared or owned by the client; out: rows x columns, row-major. Throws
// InvalidArgument if the weights are not those of the halves, and on formats and lengths that do
// not fit, before anything is sent.
void lattice_matmul(ot::Party& party, ProductHalves& halves, Operand x_format,
                    std::span<const u64> x, const OwnedWeights& weights, i64 rows,
                    std::span<u64> out);
// `batch`: blocks of rows that the halves have served before.
void cost_lattice_matmul(ot::CostMeter& meter, const CiphertextProduct& product, i64 rows,
                         i64 batch);

struct CiphertextOptions {
  lattice::Noise noise = lattice::Noise::tail;
  int threads = 1;  // that this party computes with
};

// x * y where either operand is the weights, with halves of its own. x: rows x inner, y: inner x
// columns. Throws InvalidArgument as above, and if no operand or both are owned by one party.
void lattice_matmul(ot::Party& party, Operand x_format, std::span<const u64> x, Operand y_format,
                    std::span<const u64> y, const MatrixShape& shape, int ell, std::span<u64> out,
                    const CiphertextOptions& options = {});
void cost_lattice_matmul(ot::CostMeter& meter, Operand x_format, Operand y_format,
                         const MatrixShape& shape, int ell,
                         lattice::Noise noise = lattice::Noise::tail);

// Rows of products to come; booked under Phase::preprocess.
PreparedProduct prepare_matmul(ot::Party& party, ProductHalves& halves, const OwnedWeights& weights,
                               i64 rows);
void cost_prepare_matmul(ot::CostMeter& meter, const CiphertextProduct& product, i64 rows,
                         i64 batch);

// Uses up all of `prepared`, a party's half, before it sends anything. x: its rows x inner, shared
// or owned by the client; weights as at the preparation (InvalidArgument if they differ).
// ProtocolError if the peer's half is of other rows, before anything is computed.
void prepared_matmul(ot::Party& party, PreparedProduct prepared, Operand x_format,
                     std::span<const u64> x, const OwnedWeights& weights, std::span<u64> out);
void cost_prepared_matmul(ot::CostMeter& meter, int owner, i64 rows, i64 inner, int ell);

}  // namespace privml::twopc
