// SPDX-License-Identifier: Apache-2.0
// The universal hash of silent OT's consistency check: the inner product over GF(2^128) of all
// trees' leaves with coefficients psi^i * chi^(j + 1) for leaf j of tree i, from a random pair
// (chi, psi). Two different sets of leaves collide with probability (trees + leaves) / 2^128.
#pragma once

#include <array>
#include <vector>

#include "base/buffer.h"
#include "crypto/gf128.h"

namespace privml::ot {

class TreeHash {
 public:
  // `challenge` is public from now on; trees of 2^depth leaves.
  TreeHash(crypto::Block challenge, int depth);

  // Adds the next tree.
  void add(const crypto::Block* leaves);
  // The sum of all trees so far.
  crypto::Block value() const { return sum_; }

  // chi^(place + 1); neither branches nor indices depend on the place.
  crypto::Block coefficient(u64 place) const;
  // What add() would add for trees whose only non-zero leaf, at `place`, is 1.
  void add_unit(u64 place) { append(coefficient(place)); }

 private:
  void append(crypto::Block product);

  int depth_;
  crypto::Block psi_;
  crypto::Block psi_power_{1, 0};
  AlignedVector<crypto::Block> powers_;  // chi^1 .. chi^leaves
  crypto::Block sum_{};
};

// sum_b blocks[b] * X^b for 128 blocks.
crypto::Block pack_blocks(const crypto::Block* blocks);

using CheckDigest = std::array<u8, 32>;
// Of the inner product of iteration `matrix`.
CheckDigest check_digest(crypto::Block value, u64 matrix);

}  // namespace privml::ot
