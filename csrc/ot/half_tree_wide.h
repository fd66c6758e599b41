// SPDX-License-Identifier: Apache-2.0
// A level of half trees in registers (crypto/wide.h), for files that are compiled for one
// instruction set each.
#pragma once

#include "base/wipe.h"
#include "crypto/aes_wide.h"
#include "ot/kernels.h"

namespace privml::ot {
namespace {

// The patch for groups of kNodes nodes: `values` are what it adds to the group that has its place,
// whose number `group` is in all words. So a group takes one comparison.
template <class Wide>
struct WidePatch {
  using Register = typename Wide::Register;
  static constexpr int kVectors = crypto::aes::kInterleaved, kNodes = kVectors * Wide::kBlocks;
  Register group, values[kVectors];

  explicit WidePatch(const TreePatch& patch) {
    u64 words[2 * kNodes];
    for (u64 i = 0; i < kNodes; ++i) {
      const u64 mask = -static_cast<u64>(i == patch.place % kNodes);
      words[2 * i] = patch.value.lo & mask;
      words[2 * i + 1] = patch.value.hi & mask;
    }
    for (int v = 0; v < kVectors; ++v) values[v] = Wide::load(words + 2 * Wide::kBlocks * v);
    const u64 number[2] = {patch.place / kNodes, patch.place / kNodes};
    group = Wide::broadcast(number);
    wipe(words, sizeof(words));
  }
  // What `of` takes for the group of that number.
  Register mask(u64 number) const {
    const u64 words[2] = {number, number};
    return Wide::equal(Wide::broadcast(words), group);
  }
  Register of(Register mask, int v) const { return Wide::both(mask, values[v]); }
};

template <class Wide>
crypto::Block fold_blocks(typename Wide::Register sum) {
  crypto::Block blocks[Wide::kBlocks];
  Wide::store(blocks, sum);
  crypto::Block total = blocks[0];
  for (int b = 1; b < Wide::kBlocks; ++b)
    total = {total.lo ^ blocks[b].lo, total.hi ^ blocks[b].hi};
  return total;
}

template <class Wide, bool Patched>
LevelSums grow_level(const crypto::Block* round_keys, crypto::Block* nodes, i64 count,
                     const TreePatch& change) {
  using Register = typename Wide::Register;
  constexpr int kGroup = crypto::aes::kInterleaved * Wide::kBlocks;
  const crypto::aes::Schedule<Wide> schedule(round_keys);
  const WidePatch<Wide> patch(change);
  Register left_sum = Wide::zero(), parent_sum = Wide::zero();
  // A short level is done in a copy of a whole group; the zeros behind it are no nodes.
  crypto::Block copy[2 * kGroup] = {};
  const bool partial = count < kGroup;
  if (partial) {
    for (i64 i = 0; i < count; ++i) copy[i] = nodes[i];
  }
  crypto::Block* parents = partial ? copy : nodes;
  crypto::Block* right = partial ? copy + kGroup : nodes + count;
  for (i64 done = 0; done < count; done += kGroup) {
    Register state[crypto::aes::kInterleaved], image[crypto::aes::kInterleaved];
    [[maybe_unused]] const Register here = patch.mask(static_cast<u64>(done / kGroup));
    for (int j = 0; j < crypto::aes::kInterleaved; ++j) {
      crypto::Block* at = parents + done + j * Wide::kBlocks;
      Register x = Wide::load(at);
      if constexpr (Patched) {
        x = Wide::exclusive_or(x, patch.of(here, j));
        Wide::store(at, x);
      }
      state[j] = image[j] = Wide::orthomorphism(x);
    }
    schedule.encrypt_onto(state, image);
    for (int j = 0; j < crypto::aes::kInterleaved; ++j) {
      const i64 at = done + j * Wide::kBlocks;
      const Register x = Wide::load(parents + at);
      left_sum = Wide::exclusive_or(left_sum, state[j]);
      parent_sum = Wide::exclusive_or(parent_sum, x);
      Wide::store(parents + at, state[j]);
      Wide::store(right + at, Wide::exclusive_or(state[j], x));
    }
  }
  if (!partial) return {fold_blocks<Wide>(left_sum), fold_blocks<Wide>(parent_sum)};
  LevelSums sums{};
  for (i64 i = 0; i < count; ++i) {
    const crypto::Block left = parents[i], other = right[i];
    sums.left = {sums.left.lo ^ left.lo, sums.left.hi ^ left.hi};
    sums.parents = {sums.parents.lo ^ left.lo ^ other.lo, sums.parents.hi ^ left.hi ^ other.hi};
    nodes[i] = left;
    nodes[count + i] = other;
  }
  wipe(copy, sizeof(copy));
  return sums;
}

// That there is no patch is public.
template <class Wide>
LevelSums grow_wide(const crypto::Block* round_keys, crypto::Block* nodes, i64 count,
                    const TreePatch& patch) {
  return patch.place == kNoPatch.place ? grow_level<Wide, false>(round_keys, nodes, count, patch)
                                       : grow_level<Wide, true>(round_keys, nodes, count, patch);
}

// Both patches to the first `vectors` registers of a group.
template <class Wide>
[[gnu::always_inline]] inline void patch_group(crypto::Block* nodes, u64 number, int vectors,
                                               const WidePatch<Wide>& a, const WidePatch<Wide>& b) {
  const auto in_a = a.mask(number), in_b = b.mask(number);
#pragma GCC unroll 8
  for (int v = 0; v < vectors; ++v) {
    crypto::Block* at = nodes + v * Wide::kBlocks;
    const auto change = Wide::exclusive_or(a.of(in_a, v), b.of(in_b, v));
    Wide::store(at, Wide::exclusive_or(Wide::load(at), change));
  }
}

template <class Wide>
void patch_wide(crypto::Block* nodes, i64 count, const TreePatch& a, const TreePatch& b) {
  using Patch = WidePatch<Wide>;
  const Patch first(a), second(b);
  i64 done = 0;
  for (; done + Patch::kNodes <= count; done += Patch::kNodes)
    patch_group<Wide>(nodes + done, static_cast<u64>(done / Patch::kNodes), Patch::kVectors, first,
                      second);
  patch_group<Wide>(nodes + done, static_cast<u64>(done / Patch::kNodes),
                    static_cast<int>((count - done) / Wide::kBlocks), first, second);
}

}  // namespace
}  // namespace privml::ot
