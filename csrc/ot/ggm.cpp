// SPDX-License-Identifier: Apache-2.0
#include "ot/ggm.h"

#include <sodium.h>

#include "crypto/prg.h"

namespace privml::ot {
namespace {

using Tag = std::array<crypto::Block, 2>;

std::array<crypto::Block, 2> children(crypto::Block node) {
  std::array<crypto::Block, 2> pair;
  crypto::Prg(node).fill_blocks(pair.data(), 2);
  return pair;
}

void add(Tag& sum, const Tag& tag) {
  sum[0] ^= tag[0];
  sum[1] ^= tag[1];
}

// Replaces each leaf by its seed and returns the tags.
WipedVector<Tag> stretch(WipedVector<crypto::Block>& leaves) {
  WipedVector<Tag> tags(leaves.size());
  for (size_t x = 0; x < leaves.size(); ++x) {
    std::array<crypto::Block, 3> out;
    crypto::Prg(leaves[x]).fill_blocks(out.data(), 3);
    leaves[x] = out[0];
    tags[x] = {out[1], out[2]};
  }
  return tags;
}

std::array<u8, 32> digest_of(const WipedVector<Tag>& tags) {
  std::array<u8, 32> digest;
  crypto_generichash(digest.data(), digest.size(), reinterpret_cast<const u8*>(tags.data()),
                     tags.size() * sizeof(Tag), nullptr, 0);
  return digest;
}

// Moves entry y to y ^ hole, by exchanging neighbours of distance 2^b where bit b is set.
void reorder(WipedVector<Tag>& tags, u64 hole) {
  for (size_t distance = 1; distance < tags.size(); distance *= 2, hole >>= 1) {
    for (size_t y = 0; y < tags.size(); ++y) {
      if ((y & distance) != 0) continue;
      for (int half : {0, 1}) {
        crypto::Block& first = tags[y][half];
        crypto::Block& second = tags[y + distance][half];
        const crypto::Block swap = crypto::select(static_cast<u8>(hole & 1), first ^ second);
        first ^= swap;
        second ^= swap;
      }
    }
  }
}

}  // namespace

GgmTree ggm_expand(crypto::Block root, int depth) {
  GgmTree tree{{root}, {}};
  for (int level = 0; level < depth; ++level) {
    WipedVector<crypto::Block> next(2 * tree.leaves.size());
    std::array<crypto::Block, 2> sums{};
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

WipedVector<crypto::Block> ggm_puncture(std::span<const crypto::Block> sums, u64 hole) {
  // Nodes are kept in the order (number ^ path so far), which puts the unknown one first at every
  // level.
  WipedVector<crypto::Block> nodes{crypto::kZeroBlock};
  const int depth = static_cast<int>(sums.size());
  for (int level = 0; level < depth; ++level) {
    const u8 path_bit = hole >> (depth - 1 - level) & 1;
    WipedVector<crypto::Block> next(2 * nodes.size());
    crypto::Block missing = sums[level];
    for (size_t y = 1; y < nodes.size(); ++y) {
      const auto [left, right] = children(nodes[y]);
      const crypto::Block swap = crypto::select(path_bit, left ^ right);
      next[2 * y] = left ^ swap;
      next[2 * y + 1] = right ^ swap;
      missing ^= next[2 * y + 1];
    }
    next[1] = missing;
    nodes = std::move(next);
  }
  return nodes;
}

GgmProof ggm_prove(WipedVector<crypto::Block>& leaves) {
  const WipedVector<Tag> tags = stretch(leaves);
  Tag sum{};
  for (const Tag& tag : tags) add(sum, tag);
  return {sum, digest_of(tags)};
}

bool ggm_verify(WipedVector<crypto::Block>& punctured, u64 hole, const GgmProof& proof) {
  WipedVector<Tag> tags = stretch(punctured);
  punctured[0] = crypto::kZeroBlock;
  tags[0] = proof.tag_sum;
  for (size_t y = 1; y < tags.size(); ++y) add(tags[0], tags[y]);
  reorder(tags, hole);
  return sodium_memcmp(digest_of(tags).data(), proof.digest.data(), proof.digest.size()) == 0;
}

}  // namespace privml::ot
