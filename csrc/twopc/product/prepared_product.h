// SPDX-License-Identifier: Apache-2.0
// Correlations of one matrix of weights, as a party holds and keeps them: shares of r * weights,
// for random rows r that the client knows.
//
// Security       each row of r has a seed of its own, so that what is left is independent of what
//                was used. Rows are used once: take_rows() moves them out, and a store of
//                halves gives each of them to one product. Both halves know the preparation that
//                both parties' nonces name, and which of its rows they are.
#pragma once

#include <optional>

#include "base/buffer.h"
#include "crypto/block.h"
#include "lattice/transcript.h"
#include "ot/cost.h"
#include "ot/party.h"
#include "twopc/product/operand.h"

namespace privml::twopc {

// Weights that a party owns, inner x columns; at the other party the format alone.
struct OwnedWeights {
  Operand format;
  std::span<const u64> words = {};
  lattice::Digest digest = {};  // fingerprint() of them
};

// One party's half; wiped where it ends.
struct PreparedProduct {
  int owner = 0;      // of the weights
  MatrixShape shape;  // of what is left
  int ell = 0;
  lattice::Digest weights{};  // of the weights, at their owner; else zero
  lattice::Digest digest{};   // that the preparation's public halves came from,
  i64 batch = 0;              // the number of the batch after it,
  i64 first = 0;              // and of the first row that is left: alike at both parties
  WipedVector<crypto::Block> row_seeds = {};  // of r, at the client
  WipedVector<u64> share = {};                // rows x columns
};

// The last `rows` rows, which `from` no longer has. Throws InvalidArgument if there are fewer.
PreparedProduct take_rows(PreparedProduct& from, i64 rows);

// What both halves of the same rows have in common, and those of no others.
crypto::Block tag_of(const PreparedProduct& half);

// The mask of a row.
void fill_mask(crypto::Block seed, int ell, std::span<u64> row);
// The client's only message of a product with what was prepared: x - r, after the tag.
void send_masked(ot::Party& party, const PreparedProduct& half, std::span<const u64> x);
// x - r at the owner of the weights, plus its own share of x, if it has one. Throws ProtocolError
// if the peer's half is of other rows.
std::vector<u64> receive_masked(ot::Party& party, const PreparedProduct& half,
                                std::span<const u64> share);
void cost_masked(ot::CostMeter& meter, int owner, i64 numbers, int ell);

// As bytes, for a store; as many for every half of that shape and side. Nothing if the bytes are
// no half.
i64 stored_bytes(const PreparedProduct& half);
WipedVector<u8> to_bytes(const PreparedProduct& half);
std::optional<PreparedProduct> from_bytes(Bytes bytes);

// Of weights and their format; zeros of none.
lattice::Digest fingerprint(Operand format, std::span<const u64> weights, i64 inner, i64 columns);

}  // namespace privml::twopc
