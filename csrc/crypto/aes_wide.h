// SPDX-License-Identifier: Apache-2.0
// AES-128 over registers of one or more blocks (wide.h), for files that are compiled for one
// instruction set each.
#pragma once

#include "crypto/block.h"

namespace privml::crypto::aes {
namespace {

// Independent registers in flight, enough to hide the latency of one AES round.
constexpr int kInterleaved = 8;

template <class Wide>
struct Schedule {
  typename Wide::Register keys[11];
  explicit Schedule(const Block* round_keys) {
    for (int r = 0; r < 11; ++r) keys[r] = Wide::broadcast(round_keys + r);
  }
  void encrypt(typename Wide::Register (&state)[kInterleaved]) const {
    for (auto& s : state) s = Wide::exclusive_or(s, keys[0]);
    for (int r = 1; r < 10; ++r)
      for (auto& s : state) s = Wide::round(s, keys[r]);
    for (auto& s : state) s = Wide::last_round(s, keys[10]);
  }
  // state[j] = AES(state[j]) ^ x[j]: the last round adds a key in any case, and x costs nothing.
  void encrypt_onto(typename Wide::Register (&state)[kInterleaved],
                    const typename Wide::Register (&x)[kInterleaved]) const {
    typename Wide::Register last[kInterleaved];
    for (int j = 0; j < kInterleaved; ++j) last[j] = Wide::exclusive_or(x[j], keys[10]);
    for (auto& s : state) s = Wide::exclusive_or(s, keys[0]);
    for (int r = 1; r < 10; ++r)
      for (auto& s : state) s = Wide::round(s, keys[r]);
    for (int j = 0; j < kInterleaved; ++j) state[j] = Wide::last_round(state[j], last[j]);
  }
};

template <class Wide>
i64 encrypt_groups(const Block* keys, const Block* in, Block* out, i64 count, bool feedforward) {
  constexpr int kGroup = kInterleaved * Wide::kBlocks;
  const Schedule<Wide> schedule(keys);
  i64 done = 0;
  for (; done + kGroup <= count; done += kGroup) {
    typename Wide::Register state[kInterleaved];
    for (int j = 0; j < kInterleaved; ++j) state[j] = Wide::load(in + done + j * Wide::kBlocks);
    schedule.encrypt(state);
    for (int j = 0; j < kInterleaved; ++j) {
      const i64 at = done + j * Wide::kBlocks;
      Wide::store(out + at,
                  feedforward ? Wide::exclusive_or(state[j], Wide::load(in + at)) : state[j]);
    }
  }
  return done;
}

// The last group is filled up in a copy.
template <class Wide>
i64 encrypt_all(const Block* keys, const Block* in, Block* out, i64 count, bool feedforward) {
  constexpr int kGroup = kInterleaved * Wide::kBlocks;
  const i64 done = encrypt_groups<Wide>(keys, in, out, count, feedforward);
  if (done == count) return count;
  Block rest[kGroup];
  for (i64 i = done; i < count; ++i) rest[i - done] = in[i];
  encrypt_groups<Wide>(keys, rest, rest, kGroup, feedforward);
  for (i64 i = done; i < count; ++i) out[i] = rest[i - done];
  return count;
}

template <class Wide>
i64 count_groups(const Block* keys, Block first, Block* out, i64 count) {
  constexpr int kGroup = kInterleaved * Wide::kBlocks;
  if (count < kGroup) return 0;
  const Schedule<Wide> schedule(keys);
  u64 start[2 * Wide::kBlocks];
  for (u64 b = 0; b < Wide::kBlocks; ++b) {
    start[2 * b] = first.lo + b;
    start[2 * b + 1] = first.hi;
  }
  const u64 step[2] = {Wide::kBlocks, 0};
  auto counter = Wide::load(start);
  const auto next = Wide::broadcast(step);
  i64 done = 0;
  for (; done + kGroup <= count; done += kGroup) {
    typename Wide::Register state[kInterleaved];
    for (auto& s : state) {
      s = counter;
      counter = Wide::add(counter, next);
    }
    schedule.encrypt(state);
    for (int j = 0; j < kInterleaved; ++j) Wide::store(out + done + j * Wide::kBlocks, state[j]);
  }
  return done;
}

}  // namespace
}  // namespace privml::crypto::aes
