// SPDX-License-Identifier: Apache-2.0
#include "ot/half_tree.h"

#include <algorithm>
#include <array>

#include "ot/kernels.h"

namespace privml::ot {
namespace {

crypto::Block orthomorphism(crypto::Block x) { return {x.hi, x.hi ^ x.lo}; }

// One level: `count` parents at the front of `nodes`, patched, become 2 * count children.
LevelSums grow(const crypto::Aes128& pi, crypto::Block* nodes, i64 count, const TreePatch& patch) {
  if (const OtKernels* kernels = ot_kernels(pi.backend())) {
    return kernels->grow(pi.round_keys(), nodes, count, patch);
  }
  constexpr i64 kChunk = 128;
  std::array<crypto::Block, kChunk> hashes;
  LevelSums sums{};
  for (i64 done = 0; done < count; done += kChunk) {
    const i64 n = std::min(kChunk, count - done);
    crypto::Block* parents = nodes + done;
    for (i64 i = 0; i < n; ++i) {
      parents[i] ^= crypto::select(static_cast<u64>(done + i) == patch.place, patch.value);
      hashes[i] = orthomorphism(parents[i]);
    }
    pi.encrypt_feedforward(hashes.data(), hashes.data(), n);
    for (i64 i = 0; i < n; ++i) {
      sums.left ^= hashes[i];
      sums.parents ^= parents[i];
      parents[count + i] = parents[i] ^ hashes[i];
      parents[i] = hashes[i];
    }
  }
  return sums;
}

// Applies both patches, touching all nodes alike.
void apply(const crypto::Aes128& pi, crypto::Block* nodes, i64 count, const TreePatch& a,
           const TreePatch& b) {
  if (const OtKernels* kernels = ot_kernels(pi.backend()); kernels && count % 4 == 0) {
    return kernels->patch(nodes, count, a, b);
  }
  for (i64 i = 0; i < count; ++i) {
    nodes[i] ^= crypto::select(static_cast<u64>(i) == a.place, a.value) ^
                crypto::select(static_cast<u64>(i) == b.place, b.value);
  }
}

}  // namespace

void half_tree_expand(const crypto::Aes128& pi, crypto::Block seed, crypto::Block offset, int depth,
                      crypto::Block* leaves, crypto::Block* left_sums) {
  leaves[0] = left_sums[0] = seed;
  leaves[1] = seed ^ offset;
  for (int level = 1; level < depth; ++level) {
    left_sums[level] = grow(pi, leaves, i64{1} << level, kNoPatch).left;
  }
}

void half_tree_puncture(const crypto::Aes128& pi, const crypto::Block* known_sums, u64 hole,
                        int depth, crypto::Block* leaves) {
  // In place of the node on the path stands something arbitrary, and so in place of its children;
  // the sum then gives the child off the path.
  const auto bit = [hole](int level) { return static_cast<u8>(hole >> level & 1); };
  leaves[0] = crypto::select(bit(0), known_sums[0]);
  leaves[1] = crypto::select(bit(0) ^ 1, known_sums[0]);
  crypto::Block total = known_sums[0];
  TreePatch patch = kNoPatch;
  for (int level = 1; level < depth; ++level) {
    const i64 parents = i64{1} << level;
    const LevelSums sums = grow(pi, leaves, parents, patch);
    const crypto::Block right = sums.left ^ sums.parents;
    const crypto::Block seen = right ^ crypto::select(bit(level), sums.left ^ right);
    const u64 sibling = (hole & (static_cast<u64>(parents) - 1)) | u64{bit(level) ^ 1u} << level;
    patch = {sibling, known_sums[level] ^ seen};
    total = sums.parents ^ patch.value;
  }
  apply(pi, leaves, i64{1} << depth, patch, {hole, total});
}

}  // namespace privml::ot
