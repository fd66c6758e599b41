// SPDX-License-Identifier: Apache-2.0
// A level of half trees in registers (crypto/wide.h), for files that are compiled for one
// instruction set each.
#pragma once

#include "crypto/aes_wide.h"
#include "ot/kernels.h"

namespace privml::ot {
namespace {

// The patch as the two words of every block, and the number of the first block of a register.
template <class Wide>
struct WidePatch {
  using Register = typename Wide::Register;
  Register place, value;

  explicit WidePatch(const TreePatch& patch) {
    const u64 places[2] = {patch.place, patch.place};
    place = Wide::broadcast(places);
    value = Wide::broadcast(&patch.value);
  }
  Register of(Register number) const { return Wide::both(Wide::equal(number, place), value); }
};

template <class Wide>
typename Wide::Register first_numbers() {
  u64 words[2 * Wide::kBlocks];
  for (u64 b = 0; b < Wide::kBlocks; ++b) words[2 * b] = words[2 * b + 1] = b;
  return Wide::load(words);
}

template <class Wide>
typename Wide::Register number_step() {
  const u64 words[2] = {Wide::kBlocks, Wide::kBlocks};
  return Wide::broadcast(words);
}

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
  [[maybe_unused]] const Register step = number_step<Wide>();
  [[maybe_unused]] Register number = first_numbers<Wide>();
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
    Register state[crypto::aes::kInterleaved];
    for (int j = 0; j < crypto::aes::kInterleaved; ++j) {
      crypto::Block* at = parents + done + j * Wide::kBlocks;
      Register x = Wide::load(at);
      if constexpr (Patched) {
        x = Wide::exclusive_or(x, patch.of(number));
        number = Wide::add(number, step);
        Wide::store(at, x);
      }
      state[j] = Wide::orthomorphism(x);
    }
    schedule.encrypt(state);
    for (int j = 0; j < crypto::aes::kInterleaved; ++j) {
      const i64 at = done + j * Wide::kBlocks;
      const Register x = Wide::load(parents + at);
      const Register left = Wide::exclusive_or(state[j], Wide::orthomorphism(x));
      left_sum = Wide::exclusive_or(left_sum, left);
      parent_sum = Wide::exclusive_or(parent_sum, x);
      Wide::store(parents + at, left);
      Wide::store(right + at, Wide::exclusive_or(left, x));
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
  return sums;
}

// That there is no patch is public.
template <class Wide>
LevelSums grow_wide(const crypto::Block* round_keys, crypto::Block* nodes, i64 count,
                    const TreePatch& patch) {
  return patch.place == kNoPatch.place ? grow_level<Wide, false>(round_keys, nodes, count, patch)
                                       : grow_level<Wide, true>(round_keys, nodes, count, patch);
}

template <class Wide>
void patch_wide(crypto::Block* nodes, i64 count, const TreePatch& a, const TreePatch& b) {
  using Register = typename Wide::Register;
  const WidePatch<Wide> first(a), second(b);
  const Register step = number_step<Wide>();
  Register number = first_numbers<Wide>();
  for (i64 i = 0; i < count; i += Wide::kBlocks) {
    const Register change = Wide::exclusive_or(first.of(number), second.of(number));
    Wide::store(nodes + i, Wide::exclusive_or(Wide::load(nodes + i), change));
    number = Wide::add(number, step);
  }
}

}  // namespace
}  // namespace privml::ot
