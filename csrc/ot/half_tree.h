// SPDX-License-Identifier: Apache-2.0
// Correlated GGM trees ("half trees"): 2^depth pseudo-random leaves of which the receiver learns
// all but one, every level's nodes adding up (XOR) to the sender's offset (Guo, Yang, Wang, Zhang,
// Xie, Liu, Zhao, "Half-Tree", Eurocrypt 2023, eprint 2022/1431, sections 3 and 4).
//
// Method      The root's children are a random block and its sum with the offset; a node x has the
//             children H(x) and x ^ H(x), H(x) = pi(s(x)) ^ s(x) with s(hi, lo) = (hi ^ lo, hi). So
//             a level costs one call of pi per node, the left sum of a level decides the right one,
//             and one block per level tells the receiver either of them.
// Assumption  H is circular correlation robust, pi being AES-128 with a fixed public key as ideal
//             permutation (Guo, Katz, Wang, Yu, eprint 2019/074, section 7.3).
// Order       The child of node j at level l is node j (left) or j + 2^l (right) of level l + 1:
//             bit l of a leaf's number tells the side taken at level l.
#pragma once

#include "crypto/aes.h"

namespace privml::ot {

// Writes 2^depth leaves, depth >= 1, and per level the sum of its left nodes; all leaves add up to
// `offset`. `seed` is fresh and random.
void half_tree_expand(const crypto::Aes128& pi, crypto::Block seed, crypto::Block offset, int depth,
                      crypto::Block* leaves, crypto::Block* left_sums);

// known_sums: per level the sum of the nodes on the side away from leaf `hole`. Writes all leaves
// but that one, in whose place stands the sum of the others, that is the leaf ^ offset. No branch
// and no index depends on the hole.
void half_tree_puncture(const crypto::Aes128& pi, const crypto::Block* known_sums, u64 hole,
                        int depth, crypto::Block* leaves);

}  // namespace privml::ot
