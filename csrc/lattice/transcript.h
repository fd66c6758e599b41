// SPDX-License-Identifier: Apache-2.0
// What the public random numbers of one product depend on.
//
// Functionality  the key's and the ciphertexts' uniform halves are expanded from a digest of both
//                parties' nonces, the roles, the parameters, the shape and the caller's label:
//                neither party chooses them, and no two flights or parts of one have them in
//                common.
// Assumption     BLAKE2b and, under its output as a key, AES-128 in counter mode as random oracles.
#pragma once

#include <array>

#include "crypto/prg.h"
#include "lattice/parameters.h"

namespace privml::lattice {

using Digest = std::array<u8, 32>;

// Of the weights: outputs x inner.
struct WeightsShape {
  i64 outputs = 0, inner = 0;
};

// A product as both parties know it; `weights_owner` is a rank.
struct Transcript {
  int weights_owner = 0;
  ColumnChoice choice;
  WeightsShape shape;
  Bytes label;
};

// Of everything but the nonces, so that parties that disagree find out before anything is sent.
Digest digest_of(const Transcript& transcript);
Digest digest_of(const Transcript& transcript, const Digest& owner_nonce,
                 const Digest& client_nonce);
// Of weights with these words' digest and how they are used.
Digest digest_of(const Digest& weights, Bytes use);
// Stands at the beginning of a batch of so many columns, which therefore serves as no other one.
crypto::Block tag_of(const Digest& digest, i64 batch, i64 columns);
// Of rows that were prepared from batches before `batch`, the first of which has number `first`.
crypto::Block tag_of_rows(const Digest& digest, i64 batch, i64 first, i64 rows);

enum class PublicPart : u64 { key = 0, upload = 1, switching = 2 };
crypto::Block public_seed(const Digest& digest, PublicPart part, i64 index);

}  // namespace privml::lattice
