// SPDX-License-Identifier: Apache-2.0
// (2^depth - 1)-of-2^depth OT of seeds from `depth` OTs: a tree of pseudo-random generators whose
// sender transfers, per level, the XOR of all left or of all right nodes
// (Goldreich, Goldwasser, Micali 1986; Boyle et al., CCS 2019, section 5.1; Roy, Crypto 2022,
// section 4).
//
// Assumption  AES-128 as pseudo-random generator. Secure against semi-honest parties: a dishonest
//             sender could send sums that fit one position only, which a malicious mode has to
//             check.
#pragma once

#include <array>
#include <vector>

#include "base/buffer.h"
#include "crypto/block.h"

namespace privml {

// Level 0 is below the root and decides the most significant bit of the leaf's number.
struct GgmTree {
  WipedVector<Block> leaves;
  std::vector<std::array<Block, 2>> sums;  // per level: XOR of the left nodes, of the right nodes
};
GgmTree ggm_expand(Block root, int depth);

// The receiver knows, for each level, the sum on the side away from the path to leaf `hole`.
// Returns leaves in the order y = x ^ hole: entry 0 is zero, entry y is leaf y ^ hole.
// No branch and no index depends on the hole.
WipedVector<Block> ggm_puncture(std::span<const Block> sums, u64 hole);

}  // namespace privml
