// SPDX-License-Identifier: Apache-2.0
#include "ot/half_tree.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "crypto/prg.h"

namespace privml::ot {
namespace {

const crypto::Block kOffset{0x0123456789abcdef | 1, 0xfedcba9876543210};

struct Tree {
  std::vector<crypto::Block> leaves, left_sums;
};

Tree expand(const crypto::Aes128& pi, crypto::Block seed, int depth) {
  Tree tree{std::vector<crypto::Block>(i64{1} << depth), std::vector<crypto::Block>(depth)};
  half_tree_expand(pi, seed, kOffset, depth, tree.leaves.data(), tree.left_sums.data());
  return tree;
}

crypto::Block sum(const std::vector<crypto::Block>& blocks) {
  crypto::Block total{};
  for (crypto::Block b : blocks) total ^= b;
  return total;
}

// The definition, node by node.
std::vector<crypto::Block> by_definition(const crypto::Aes128& pi, crypto::Block seed, int depth) {
  std::vector<crypto::Block> nodes{seed, seed ^ kOffset};
  for (int level = 1; level < depth; ++level) {
    std::vector<crypto::Block> next(2 * nodes.size());
    for (size_t j = 0; j < nodes.size(); ++j) {
      const crypto::Block image{nodes[j].hi, nodes[j].hi ^ nodes[j].lo};
      crypto::Block hash;
      pi.encrypt(&image, &hash, 1);
      hash ^= image;
      next[j] = hash;
      next[j + nodes.size()] = nodes[j] ^ hash;
    }
    nodes = next;
  }
  return nodes;
}

TEST(HalfTree, FollowsItsDefinitionAndAddsUpToTheOffset) {
  const crypto::Aes128 pi({3, 4});
  for (int depth = 1; depth <= 11; ++depth) {
    const Tree tree = expand(pi, {7, static_cast<u64>(depth)}, depth);
    EXPECT_EQ(tree.leaves, by_definition(pi, {7, static_cast<u64>(depth)}, depth));
    EXPECT_EQ(sum(tree.leaves), kOffset);
    std::set<std::pair<u64, u64>> distinct;
    for (crypto::Block leaf : tree.leaves) distinct.insert({leaf.lo, leaf.hi});
    EXPECT_EQ(distinct.size(), tree.leaves.size());
    // Left nodes of a level have bit `level` of their number clear.
    const std::vector<crypto::Block> half(tree.leaves.begin(),
                                          tree.leaves.begin() + (1 << (depth - 1)));
    EXPECT_EQ(tree.left_sums[depth - 1], sum(half));
  }
}

TEST(HalfTree, ReceiverLearnsAllLeavesButOne) {
  const crypto::Aes128 pi({5, 6});
  for (int depth = 1; depth <= 10; ++depth) {
    const Tree tree = expand(pi, {static_cast<u64>(depth), 1}, depth);
    for (u64 hole = 0; hole < u64{1} << depth; hole += depth <= 7 ? 1 : 37) {
      std::vector<crypto::Block> known(depth), leaves(i64{1} << depth);
      for (int level = 0; level < depth; ++level) {
        // Left sum if the path goes right.
        known[level] = tree.left_sums[level] ^ crypto::select((hole >> level & 1) ^ 1, kOffset);
      }
      half_tree_puncture(pi, known.data(), hole, depth, leaves.data());
      std::vector<crypto::Block> expected = tree.leaves;
      expected[hole] ^= kOffset;
      ASSERT_EQ(leaves, expected) << depth << " " << hole;
    }
  }
}

TEST(HalfTree, AWrongSumChangesTheLeaves) {
  const crypto::Aes128 pi({8, 9});
  const int depth = 6;
  const Tree tree = expand(pi, {1, 2}, depth);
  for (int level = 0; level < depth; ++level) {
    std::vector<crypto::Block> known(depth), leaves(i64{1} << depth), wrong(i64{1} << depth);
    for (int l = 0; l < depth; ++l) known[l] = tree.left_sums[l] ^ kOffset;  // hole 0
    half_tree_puncture(pi, known.data(), 0, depth, leaves.data());
    known[level].lo ^= 1;
    half_tree_puncture(pi, known.data(), 0, depth, wrong.data());
    int different = 0;
    for (size_t j = 0; j < leaves.size(); ++j) different += !(leaves[j] == wrong[j]);
    // All that hangs below the path's node at this level, its own leaf among them.
    EXPECT_EQ(different, 1 << (depth - level));
  }
}

}  // namespace
}  // namespace privml::ot
