// SPDX-License-Identifier: Apache-2.0
#include "ot/half_tree.h"

#include <algorithm>
#include <array>

#include "base/multiversion.h"

namespace privml {
namespace {

// Four blocks; may alias arrays of blocks.
typedef u64 FourBlocks __attribute__((vector_size(64), aligned(16), may_alias));
constexpr i64 kLanes = 4;

Block fold(FourBlocks sum) {
  return {sum[0] ^ sum[2] ^ sum[4] ^ sum[6], sum[1] ^ sum[3] ^ sum[5] ^ sum[7]};
}

// A change of one of many nodes whose place is secret.
struct Patch {
  u64 place;
  Block value;
};
constexpr Patch kNone{~u64{0}, {}};

// Applies the patch, touching all nodes alike, and writes s(nodes[i]) to out[i]; `first` is the
// number of nodes[0].
PRIVML_TARGET_CLONES
void orthomorphism(Block* nodes, i64 count, u64 first, const Patch& patch, Block* out) {
  const FourBlocks upper_half{0, ~u64{0}, 0, ~u64{0}, 0, ~u64{0}, 0, ~u64{0}};
  const Block v = patch.value;
  const FourBlocks value{v.lo, v.hi, v.lo, v.hi, v.lo, v.hi, v.lo, v.hi};
  FourBlocks number = FourBlocks{0, 0, 1, 1, 2, 2, 3, 3} + first;
  i64 i = 0;
  for (; i + kLanes <= count; i += kLanes, number += kLanes) {
    FourBlocks x = *reinterpret_cast<const FourBlocks*>(nodes + i);
    x ^= reinterpret_cast<FourBlocks>(number == patch.place) & value;
    *reinterpret_cast<FourBlocks*>(nodes + i) = x;
    const FourBlocks upper = __builtin_shufflevector(x, x, 1, 1, 3, 3, 5, 5, 7, 7);
    const FourBlocks lower = __builtin_shufflevector(x, x, 0, 0, 2, 2, 4, 4, 6, 6);
    *reinterpret_cast<FourBlocks*>(out + i) = upper ^ (lower & upper_half);
  }
  for (; i < count; ++i) {
    nodes[i] ^= select(first + static_cast<u64>(i) == patch.place, patch.value);
    out[i] = {nodes[i].hi, nodes[i].hi ^ nodes[i].lo};
  }
}

struct LevelSums {
  Block left;
  Block parents;
};

// Turns parents into children: left ones in their place, right ones in `right`.
PRIVML_TARGET_CLONES
void branch(Block* nodes, const Block* hashes, i64 count, Block* right, LevelSums& sums) {
  FourBlocks left_sum{}, parent_sum{};
  i64 i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const FourBlocks parent = *reinterpret_cast<const FourBlocks*>(nodes + i);
    const FourBlocks left = *reinterpret_cast<const FourBlocks*>(hashes + i);
    left_sum ^= left;
    parent_sum ^= parent;
    *reinterpret_cast<FourBlocks*>(nodes + i) = left;
    *reinterpret_cast<FourBlocks*>(right + i) = left ^ parent;
  }
  for (; i < count; ++i) {
    sums.left ^= hashes[i];
    sums.parents ^= nodes[i];
    right[i] = nodes[i] ^ hashes[i];
    nodes[i] = hashes[i];
  }
  sums.left ^= fold(left_sum);
  sums.parents ^= fold(parent_sum);
}

// Applies both patches, touching all nodes alike.
PRIVML_TARGET_CLONES
void apply(Block* nodes, i64 count, const Patch& a, const Patch& b) {
  const Block v = a.value, w = b.value;
  const FourBlocks value_a{v.lo, v.hi, v.lo, v.hi, v.lo, v.hi, v.lo, v.hi};
  const FourBlocks value_b{w.lo, w.hi, w.lo, w.hi, w.lo, w.hi, w.lo, w.hi};
  FourBlocks number{0, 0, 1, 1, 2, 2, 3, 3};
  i64 i = 0;
  for (; i + kLanes <= count; i += kLanes, number += kLanes) {
    *reinterpret_cast<FourBlocks*>(nodes + i) ^=
        (reinterpret_cast<FourBlocks>(number == a.place) & value_a) ^
        (reinterpret_cast<FourBlocks>(number == b.place) & value_b);
  }
  for (; i < count; ++i) {
    nodes[i] ^= select(static_cast<u64>(i) == a.place, a.value) ^
                select(static_cast<u64>(i) == b.place, b.value);
  }
}

// One level: `count` parents at the front of `nodes`, patched, become 2 * count children.
LevelSums grow(const Aes128& pi, Block* nodes, i64 count, const Patch& patch) {
  constexpr i64 kChunk = 128;
  alignas(64) std::array<Block, kChunk> hashes;
  LevelSums sums{};
  for (i64 done = 0; done < count; done += kChunk) {
    const i64 n = std::min(kChunk, count - done);
    orthomorphism(nodes + done, n, static_cast<u64>(done), patch, hashes.data());
    pi.encrypt_feedforward(hashes.data(), hashes.data(), n);
    branch(nodes + done, hashes.data(), n, nodes + count + done, sums);
  }
  return sums;
}

}  // namespace

void half_tree_expand(const Aes128& pi, Block seed, Block offset, int depth, Block* leaves,
                      Block* left_sums) {
  leaves[0] = left_sums[0] = seed;
  leaves[1] = seed ^ offset;
  for (int level = 1; level < depth; ++level) {
    left_sums[level] = grow(pi, leaves, i64{1} << level, kNone).left;
  }
}

void half_tree_puncture(const Aes128& pi, const Block* known_sums, u64 hole, int depth,
                        Block* leaves) {
  // In place of the node on the path stands something arbitrary, and so in place of its children;
  // the sum then gives the child off the path.
  const auto bit = [hole](int level) { return static_cast<u8>(hole >> level & 1); };
  leaves[0] = select(bit(0), known_sums[0]);
  leaves[1] = select(bit(0) ^ 1, known_sums[0]);
  Block total = known_sums[0];
  Patch patch = kNone;
  for (int level = 1; level < depth; ++level) {
    const i64 parents = i64{1} << level;
    const LevelSums sums = grow(pi, leaves, parents, patch);
    const Block right = sums.left ^ sums.parents;
    const Block seen = right ^ select(bit(level), sums.left ^ right);
    const u64 sibling = (hole & (static_cast<u64>(parents) - 1)) | u64{bit(level) ^ 1u} << level;
    patch = {sibling, known_sums[level] ^ seen};
    total = sums.parents ^ patch.value;
  }
  apply(leaves, i64{1} << depth, patch, {hole, total});
}

}  // namespace privml
