// SPDX-License-Identifier: Apache-2.0
#include "ot/ggm.h"

#include "crypto/prg.h"

namespace privml {
namespace {

std::array<Block, 2> children(Block node) {
  std::array<Block, 2> pair;
  Prg(node).fill_blocks(pair.data(), 2);
  return pair;
}

}  // namespace

GgmTree ggm_expand(Block root, int depth) {
  GgmTree tree{{root}, {}};
  for (int level = 0; level < depth; ++level) {
    WipedVector<Block> next(2 * tree.leaves.size());
    std::array<Block, 2> sums{};
    for (size_t j = 0; j < tree.leaves.size(); ++j) {
      const auto [left, right] = children(tree.leaves[j]);
      next[2 * j] = left;
      next[2 * j + 1] = right;
      sums[0] ^= left;
      sums[1] ^= right;
    }
    tree.leaves = std::move(next);
    tree.sums.push_back(sums);
  }
  return tree;
}

WipedVector<Block> ggm_puncture(std::span<const Block> sums, u64 hole) {
  // Nodes are kept in the order (number ^ path so far), which puts the unknown one first at every
  // level.
  WipedVector<Block> nodes{kZeroBlock};
  const int depth = static_cast<int>(sums.size());
  for (int level = 0; level < depth; ++level) {
    const u8 path_bit = hole >> (depth - 1 - level) & 1;
    WipedVector<Block> next(2 * nodes.size());
    Block missing = sums[level];
    for (size_t y = 1; y < nodes.size(); ++y) {
      const auto [left, right] = children(nodes[y]);
      const Block swap = select(path_bit, left ^ right);
      next[2 * y] = left ^ swap;
      next[2 * y + 1] = right ^ swap;
      missing ^= next[2 * y + 1];
    }
    next[1] = missing;
    nodes = std::move(next);
  }
  return nodes;
}

}  // namespace privml
