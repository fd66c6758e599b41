// SPDX-License-Identifier: Apache-2.0
// (2^depth - 1)-of-2^depth OT of seeds from `depth` OTs: a tree of pseudo-random generators whose
// sender transfers, per level, the XOR of all left or of all right nodes
// (Goldreich, Goldwasser, Micali 1986; Boyle et al., CCS 2019, section 5.1; Roy, Crypto 2022,
// section 4).
//
// Assumption  AES-128 as pseudo-random generator; that alone holds against semi-honest parties: a
//             dishonest sender could send sums that fit one position of the hole only.
// Proof       against dishonest senders (Boyle et al., CCS 2019, "Efficient two-round OT
//             extension", section 4; Roy, section 5): every leaf is stretched to a seed and a tag
//             of 256 bits; the sender transfers the XOR of all tags and a digest of all tags in
//             order. The receiver derives the tag at its hole from the XOR and compares digests.
//             The digest fixes all tags and each tag its leaf (AES as ideal cipher, BLAKE2b
//             collision resistant), so whatever the hole, an accepting receiver holds the leaves
//             that the digest determines.
// Leakage     whether a proof is accepted may depend on the hole: a dishonest sender can guess a
//             set of positions, is caught if the hole lies outside, and learns that it lies inside
//             otherwise.
#pragma once

#include <array>
#include <vector>

#include "base/buffer.h"
#include "crypto/block.h"

namespace privml::ot {

// Level 0 is below the root and decides the most significant bit of the leaf's number.
struct GgmTree {
  WipedVector<crypto::Block> leaves;
  WipedVector<std::array<crypto::Block, 2>>
      sums;  // per level: XOR of the left nodes, of the right nodes
};
GgmTree ggm_expand(crypto::Block root, int depth);

// The receiver knows, for each level, the sum on the side away from the path to leaf `hole`.
// Returns leaves in the order y = x ^ hole: entry 0 is zero, entry y is leaf y ^ hole.
// No branch and no index depends on the hole.
WipedVector<crypto::Block> ggm_puncture(std::span<const crypto::Block> sums, u64 hole);

struct GgmProof {
  std::array<crypto::Block, 2> tag_sum;
  std::array<u8, 32> digest;
};

// Replaces the leaves by their seeds and returns the proof.
GgmProof ggm_prove(WipedVector<crypto::Block>& leaves);
// The same for what ggm_puncture() returned (entry 0 stays unknown); whether the proof holds.
bool ggm_verify(WipedVector<crypto::Block>& punctured, u64 hole, const GgmProof& proof);

}  // namespace privml::ot
