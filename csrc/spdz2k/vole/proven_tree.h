// SPDX-License-Identifier: Apache-2.0
// One tree of ggm.h with its proof, from the party that knows all leaves to the party that lacks
// one.
//
// Leakage        ggm.h: what a dishonest sender may guess of the hole.
// Cost           sender to receiver: proven_tree_bytes(depth).
#pragma once

#include "base/buffer.h"
#include "ot/party.h"

namespace privml::spdz2k {

constexpr i64 proven_tree_bytes(int depth) { return 32 * i64{depth} + 64; }

// The seeds of all 2^depth leaves of a fresh tree. The sums of left and of right nodes of each
// level are sent masked with pads of an OT.
WipedVector<crypto::Block> send_proven_tree(ot::Party& party, int depth,
                                            const crypto::Block* left_pads,
                                            const crypto::Block* right_pads);

// The seeds in the order y = leaf ^ hole, with nothing at y = 0. pads: of each level's sum on the
// side away from the hole. `valid` becomes false if the proof fails; evaluate it when all trees
// have been read.
WipedVector<crypto::Block> receive_proven_tree(ot::Party& party, int depth, u64 hole,
                                               const crypto::Block* pads, bool& valid);

}  // namespace privml::spdz2k
