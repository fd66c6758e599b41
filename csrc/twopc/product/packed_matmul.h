// SPDX-License-Identifier: Apache-2.0
// Matrix products of few rows with weights that one party knows, by packed lattice-based encryption
// (lattice/packed.h).
//
// Functionality  out = x * weights mod 2^ell as additive shares, exact; x is shared or owned by the
//                client, the party that does not own the weights.
// Method         once for many products, both parties' nonces decide the public halves and the
//                client sends its key and what switches keys. For each product it encrypts its
//                share of x; the owner answers with packed, re-randomised and masked sums; the
//                noise in the low bits is dropped by truncate_reduce, exactly.
// Leakage        none beyond shapes and formats. Assumption: ciphertext_product.h and circular
//                security (lattice/packed.h). A result is wrong with probability below 2^-100 for
//                each of its values.
// Cost           the first product of keys: 64 bytes both ways and switching_bytes() up; each
//                product: a tag and packed_upload_bytes() up, packed_answer_bytes() for each
//                2^levels outputs down; truncate_reduce of rows * columns numbers of ell + d bits
//                by d. Depth 2 (the first 3), and truncate_reduce's.
// Source         lattice/packed.h.
#pragma once

#include <memory>
#include <optional>

#include "lattice/packed.h"
#include "ot/cost.h"
#include "ot/party.h"
#include "twopc/product/operand.h"

namespace privml {

// What a party keeps of keys for products with any weights of one owner.
struct PackingKeys {
  int owner = 0;  // of the weights
  lattice::SwitchingSet set = lattice::kSwitchingSets[0];
  i64 products = 0;  // so far
  // Since the first product, and made anew after lattice::kMostPackedProducts:
  lattice::Digest digest{};
  std::unique_ptr<Prg> prg = nullptr;
  std::unique_ptr<lattice::KeyOwner> key = nullptr;             // the client's
  std::unique_ptr<lattice::SwitchingKeys> switching = nullptr;  // the owner's
};

// The gap with the fewest bytes that such keys serve; none where the rows or the noise fit no gap.
std::optional<lattice::PackedChoice> packed_choice(const MatrixShape& shape, Operand weights,
                                                   int ell, const lattice::SwitchingSet& set);

// x: rows x inner, weights: inner x columns, empty at the client; out: rows x columns. Throws
// InvalidArgument where packed_choice() has none, and on formats and lengths that do not fit,
// before anything is sent; ProtocolError where the peer's product or messages are others. Keys that
// have served lattice::kMostPackedProducts are made anew.
void packed_matmul(Party& party, PackingKeys& keys, Operand x_format, std::span<const u64> x,
                   Operand format, std::span<const u64> weights, const MatrixShape& shape, int ell,
                   std::span<u64> out);
// `products`: that the keys have served before.
void cost_packed_matmul(CostMeter& meter, const lattice::SwitchingSet& set, i64 products,
                        Operand format, const MatrixShape& shape, int ell);

}  // namespace privml
