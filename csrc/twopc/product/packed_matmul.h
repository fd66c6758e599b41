// SPDX-License-Identifier: Apache-2.0
// Matrix products of few rows with weights that one party knows, by packed lattice-based encryption
// (lattice/packed.h).
//
// Functionality  out = x * weights mod 2^ell as additive shares, exact; x is shared or owned by the
//                client, the party that does not own the weights.
// Method, leakage, assumption, cost: packed_product.h, with one message.
// Source         lattice/packed.h.
#pragma once

#include <optional>

#include "twopc/product/operand.h"
#include "twopc/product/packed_product.h"

namespace privml::twopc {

// The gap with the fewest bytes that such keys serve; none if the rows or the noise fit no gap.
std::optional<lattice::PackedChoice> packed_choice(const MatrixShape& shape, Operand weights,
                                                   int ell, const lattice::SwitchingSet& set);

// x: rows x inner, weights: inner x columns, empty at the client; out: rows x columns. Throws
// InvalidArgument if packed_choice() has none, and on formats and lengths that do not fit,
// before anything is sent; ProtocolError if the peer's product or messages are others. Keys that
// have served lattice::kMostPackedProducts are made anew.
void packed_matmul(ot::Party& party, PackingKeys& keys, Operand x_format, std::span<const u64> x,
                   Operand format, std::span<const u64> weights, const MatrixShape& shape, int ell,
                   std::span<u64> out);
// `products`: that the keys have served before.
void cost_packed_matmul(ot::CostMeter& meter, const lattice::SwitchingSet& set, i64 products,
                        Operand format, const MatrixShape& shape, int ell);

}  // namespace privml::twopc
