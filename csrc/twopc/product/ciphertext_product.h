// SPDX-License-Identifier: Apache-2.0
// Products of weights that one party knows with matrices of ring elements that the other party
// knows, by lattice-based encryption (lattice/columns.h).
//
// Functionality  the owner holds weights (outputs x inner, small and signed), the client a message
//                (inner x columns in Z_{2^ell}) for each batch. They get additive shares of weights
//                * message mod 2^ell, exact.
// Method         first, both parties' nonces decide the public halves, and the owner sends its
//                answers' halves c1, which serve all batches. In each batch the client encrypts its
//                rows under a fresh key. The owner sends nothing back: c0 of its answers and c1
//                times the key are shares, whose last bit, in which noise is, is dropped exactly by
//                transfers, which make fresh shares (last_bit.h).
// Leakage        none beyond shape, formats and label. Assumption: ring learning with errors
//                (lattice/parameters.h), random oracles (lattice/transcript.h), correlated OT,
//                correlation-robust hash. A result is wrong with probability below 2^-100 for each
//                of its values (Noise::tail), or never (Noise::proved). The secrets of c1 serve one
//                matrix of weights alone: another one is refused.
// Cost           of a batch: a tag, the key and the used coefficients of a ciphertext per row of
//                the message up, of choice.upload_bits each; drop_last_bit of outputs * columns
//                numbers. The first one besides: 64 bytes of digest and nonce both ways, and c1 of
//                an answer for each output down, beside the upload. Depth 2 (the first 3).
// Source         lattice/columns.h. With a message known ahead: Mishra et al., Delphi (USENIX
//                Security 2020); Liu et al., MiniONN (CCS 2017).
#pragma once

#include <vector>

#include "base/buffer.h"
#include "lattice/columns.h"
#include "ot/cost.h"
#include "ot/party.h"

namespace privml::twopc {

// What both parties know of products with one matrix of weights.
struct CiphertextProduct {
  int owner = 0;  // of the weights
  lattice::ColumnChoice choice;
  lattice::WeightsShape shape;
  u64 largest = 0;  // weight, in absolute value
};

inline int ring_bits(const CiphertextProduct& product) { return product.choice.ring_bits(); }

// What a party keeps from batch to batch; a copy serves no batch that the original serves.
struct ProductHalves {
  CiphertextProduct product;
  lattice::Digest weights{};  // of the weights, at their owner
  std::vector<u8> label{};    // of what it is for; both parties' alike
  i64 batches = 0;            // so far
  int threads = 1;            // that this party computes with
  // Since the first batch, and made anew after lattice::kMostBatches:
  lattice::Digest digest{};                             // that the public halves come from
  Secret<crypto::Block> blinding = crypto::kZeroBlock;  // the owner's
  std::vector<u8> c1{};                                 // of the answers, at the client
};

// The next batch. `weights` are the owner's, `message` is the client's, of at most choice.set.n
// columns; out: outputs x columns. After lattice::kMostBatches the next one begins anew. Throws
// ProtocolError if the peer's product, label or messages are not those of this batch.
void ciphertext_product(ot::Party& party, ProductHalves& halves, i64 columns,
                        std::span<const u64> weights, std::span<const u64> message,
                        std::span<u64> out);
void cost_ciphertext_product(ot::CostMeter& meter, const CiphertextProduct& product, i64 batch,
                             i64 columns);

// Bytes up and down of the beginning, which the first batch takes besides; those up of a batch,
// whose answers are not sent, without those that drop_last_bit takes.
std::array<i64, 2> beginning_bytes(const CiphertextProduct& product);
i64 batch_bytes(const CiphertextProduct& product, i64 columns);

}  // namespace privml::twopc
