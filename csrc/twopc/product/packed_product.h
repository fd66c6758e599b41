// SPDX-License-Identifier: Apache-2.0
// Products of weights that one party knows with messages that the other party knows, by packed
// lattice-based encryption (lattice/packed.h): what matrix products and convolutions have in
// common.
//
// Functionality  the owner holds weights (outputs x inner, small and signed), the client messages
//                (rows x positions in Z_{2^ell}). They get additive shares of the sums that a
//                lattice::PackedShape asks for, mod 2^ell, exact.
// Method         once for many products, both parties' nonces decide the public halves and the
//                client sends its key and what switches keys. For each product it encrypts its
//                messages; the owner packs and re-randomises sums and sends one half of each; the
//                other half and the first one times the key are shares, whose last bit, in which
//                noise is, is dropped exactly by transfers, which make fresh shares (last_bit.h).
// Leakage        none beyond shapes and formats. Assumption: ciphertext_product.h and circular
//                security (lattice/packed.h). A result is wrong with probability below 2^-100 for
//                each of its values.
// Cost           the first product of the keys: 64 bytes both ways and switching_bytes() up; each
//                product: a tag and packed_upload_bytes() for each message up,
//                packed_answer_bytes() for each message and 2^levels outputs down; drop_last_bit
//                of all results. Depth 3 (the first 4).
// Source         lattice/packed.h.
#pragma once

#include <memory>

#include "lattice/packed.h"
#include "ot/cost.h"
#include "ot/party.h"

namespace privml::twopc {

// What a party keeps of keys for products with any weights of one owner.
struct PackingKeys {
  int owner = 0;  // of the weights
  lattice::SwitchingSet set = lattice::kSwitchingSets[0];
  int threads = 1;   // that the owner answers with
  i64 products = 0;  // so far
  // Since the first product, and made anew after lattice::kMostPackedProducts:
  lattice::Digest digest{};
  std::unique_ptr<crypto::Prg> prg = nullptr;
  std::unique_ptr<lattice::KeyOwner> key = nullptr;             // the client's
  std::unique_ptr<lattice::SwitchingKeys> switching = nullptr;  // the owner's
};

// What both parties know of a product.
struct PackedProduct {
  lattice::PackedChoice choice;
  lattice::PackedShape shape;
  i64 messages = 1;
};

// `weights` are the owner's, whole words; `messages` are the client's, of which the low bits
// matter; out: messages x outputs x places. Keys that have served lattice::kMostPackedProducts are
// made anew. Throws ProtocolError if the peer's product or messages are others.
void packed_product(ot::Party& party, PackingKeys& keys, const PackedProduct& product,
                    std::span<const u64> weights, std::span<const u64> messages,
                    std::span<u64> out);
// What a cost depends on of keys; `products` that they have served before.
struct KeysCost {
  int owner = 0;
  lattice::SwitchingSet set;
  i64 products = 0;
};
void cost_packed_product(ot::CostMeter& meter, const KeysCost& keys, const PackedProduct& product);

// Bytes up and down besides the tag, those of keys and what drop_last_bit takes.
std::array<i64, 2> packed_bytes_of(const PackedProduct& product);

}  // namespace privml::twopc
