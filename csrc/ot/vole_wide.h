// SPDX-License-Identifier: Apache-2.0
// The generator's rows of small-field VOLE and their sums in registers (crypto/wide.h), for files
// that are compiled for one instruction set each. As many AES states are in flight as hide the
// latency of a round, of several counters under several keys: that also serves short rows, reads
// each round key once for several registers, and leaves the sums to be taken from registers.
#pragma once

#include "crypto/block.h"
#include "ot/vole_fold.h"

namespace privml::ot {
namespace {

// Sums 2^Bits states, `Vectors` apart, into the first, and upper halves into planes, `Vectors`
// apart too.
template <class Wide, int Bits, int Vectors>
[[gnu::always_inline]] inline void fold_states(typename Wide::Register* states,
                                               typename Wide::Register* planes) {
  if constexpr (Bits > 0) {
    constexpr int kHalf = Vectors << (Bits - 1);
    fold_states<Wide, Bits - 1, Vectors>(states, planes);
    fold_states<Wide, Bits - 1, Vectors>(states + kHalf, planes);
    auto& plane = planes[(Bits - 1) * Vectors];
    plane = Wide::exclusive_or(plane, states[kHalf]);
    states[0] = Wide::exclusive_or(states[0], states[kHalf]);
  }
}

// What a register's counters are ahead of those of the first one.
template <class Wide>
constexpr u64 kSteps[16] = {0 * Wide::kBlocks, 0, 1 * Wide::kBlocks, 0, 2 * Wide::kBlocks, 0,
                            3 * Wide::kBlocks, 0, 4 * Wide::kBlocks, 0, 5 * Wide::kBlocks, 0,
                            6 * Wide::kBlocks, 0, 7 * Wide::kBlocks, 0};

// AES of `Vectors` registers of counters under 2^Bits keys.
template <class Wide, int Bits, int Vectors>
[[gnu::always_inline]] inline void encrypt_counters(const crypto::Block* keys, i64 key_stride,
                                                    typename Wide::Register first,
                                                    typename Wide::Register* states) {
  constexpr int kSeeds = 1 << Bits;
#pragma GCC unroll 16
  for (int x = 0; x < kSeeds; ++x) {
    const auto key = Wide::broadcast(keys + x * key_stride);
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) {
      states[x * Vectors + v] =
          Wide::exclusive_or(Wide::add(first, Wide::broadcast(kSteps<Wide> + 2 * v)), key);
    }
  }
#pragma GCC unroll 9
  for (int r = 1; r < 10; ++r) {
#pragma GCC unroll 16
    for (int x = 0; x < kSeeds; ++x) {
      const auto key = Wide::broadcast(keys + x * key_stride + r);
#pragma GCC unroll 16
      for (int v = 0; v < Vectors; ++v)
        states[x * Vectors + v] = Wide::round(states[x * Vectors + v], key);
    }
  }
#pragma GCC unroll 16
  for (int x = 0; x < kSeeds; ++x) {
    const auto key = Wide::broadcast(keys + x * key_stride + 10);
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v)
      states[x * Vectors + v] = Wide::last_round(states[x * Vectors + v], key);
  }
}

// `Vectors` registers of every row; 2^Inner seeds at a time.
template <class Wide, int Digit, int Inner, int Vectors>
[[gnu::always_inline]] inline void expand_columns(const crypto::Block* keys, i64 key_stride,
                                                  u64 position, crypto::Block* total,
                                                  const FoldPlanes& planes) {
  using Register = typename Wide::Register;
  const Register first = Wide::counters(position);
  Register sums[Vectors], plane[Digit * Vectors];
  for (int v = 0; v < Vectors; ++v) {
    sums[v] = Wide::zero();
    for (int b = 0; b < Digit; ++b) {
      const crypto::Block* from = planes.first + b * planes.stride + Wide::kBlocks * v;
      plane[b * Vectors + v] = planes.add ? Wide::load(from) : Wide::zero();
    }
  }
  for (int group = 0; group < 1 << (Digit - Inner); ++group) {
    Register states[Vectors << Inner];
    encrypt_counters<Wide, Inner, Vectors>(keys + (group << Inner) * key_stride, key_stride, first,
                                           states);
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) {
      fold_states<Wide, Inner, Vectors>(states + v, plane + v);
      sums[v] = Wide::exclusive_or(sums[v], states[v]);
      for (int b = Inner; b < Digit; ++b) {
        Register& upper = plane[b * Vectors + v];
        if (group >> (b - Inner) & 1) upper = Wide::exclusive_or(upper, states[v]);
      }
    }
  }
  for (int v = 0; v < Vectors; ++v) {
    for (int b = 0; b < Digit; ++b)
      Wide::store(planes.first + b * planes.stride + Wide::kBlocks * v, plane[b * Vectors + v]);
    Wide::store(total + Wide::kBlocks * v, sums[v]);
  }
}

// States is a power of two from 8 to 16.
template <class Wide, int Digit, int States>
void expand_digit(const crypto::Block* keys, i64 key_stride, u64 position, i64 blocks,
                  crypto::Block* total, const FoldPlanes& planes) {
  constexpr int kInner = Digit < 2 ? Digit : 2;
  constexpr int kVectors = States >> kInner;
  constexpr i64 kStep = Wide::kBlocks * kVectors;
  // What is left is a multiple of four blocks.
  constexpr int kRest = kFoldBlocks / Wide::kBlocks;
  constexpr int kRestInner = (kRest << Digit) <= States ? Digit : kInner;
  FoldPlanes at = planes;
  i64 done = 0;
  for (; done + kStep <= blocks; done += kStep, at.first += kStep) {
    expand_columns<Wide, Digit, kInner, kVectors>(
        keys, key_stride, position + static_cast<u64>(done), total + done, at);
  }
  for (; done < blocks; done += kFoldBlocks, at.first += kFoldBlocks) {
    expand_columns<Wide, Digit, kRestInner, kRest>(
        keys, key_stride, position + static_cast<u64>(done), total + done, at);
  }
}

template <class Wide, int States>
void expand_wide(const crypto::Block* keys, i64 key_stride, int digit, u64 position, i64 blocks,
                 crypto::Block* total, const FoldPlanes& planes) {
  switch (digit) {
    case 1:
      return expand_digit<Wide, 1, States>(keys, key_stride, position, blocks, total, planes);
    case 2:
      return expand_digit<Wide, 2, States>(keys, key_stride, position, blocks, total, planes);
    case 3:
      return expand_digit<Wide, 3, States>(keys, key_stride, position, blocks, total, planes);
    case 4:
      return expand_digit<Wide, 4, States>(keys, key_stride, position, blocks, total, planes);
  }
}

}  // namespace
}  // namespace privml::ot
