// SPDX-License-Identifier: Apache-2.0
// Rows of the LPN code with AES in registers (crypto/wide.h), for files that are compiled for one
// instruction set each.
#pragma once

#include "crypto/aes_wide.h"
#include "ot/kernels.h"
#include "ot/lpn.h"

namespace privml::ot {
namespace {

typedef u32 LpnWord __attribute__((may_alias));

// The random words of 64 rows, made in groups, as offsets of bytes in the secret's table.
template <class Wide>
struct LpnOffsets {
  using Register = typename Wide::Register;
  static constexpr i64 kGroup = crypto::aes::kInterleaved * Wide::kBlocks;
  static constexpr i64 kGroups = LpnCode::kIndexBlocks / kGroup;
  static_assert(LpnCode::kIndexBlocks % kGroup == 0);

  explicit LpnOffsets(const LpnRows& code) : schedule(code.round_keys) {
    const u64 lengths[2] = {code.length, code.length};
    length = Wide::broadcast(lengths);
    const u64 next[2] = {Wide::kBlocks, 0};
    step = Wide::broadcast(next);
    counter = Wide::add(Wide::broadcast(&code.counter), Wide::counters(0));
  }
  // The next group.
  [[gnu::always_inline]] void make(crypto::Block* out) {
    Register state[crypto::aes::kInterleaved];
    for (auto& s : state) {
      s = counter;
      counter = Wide::add(counter, step);
    }
    schedule.encrypt(state);
    for (int j = 0; j < crypto::aes::kInterleaved; ++j)
      Wide::store(out + j * Wide::kBlocks,
                  Wide::template shift_words<4>(Wide::scale(state[j], length)));
  }

  crypto::aes::Schedule<Wide> schedule;
  Register length, step, counter;
};

template <class Wide>
void add_rows_wide(const LpnRows& code, const RowNoise& noise, crypto::Block* rows, i64 count) {
  static_assert(sizeof(crypto::Block) == 1 << 4);
  constexpr i64 kRows = LpnCode::kRowMultiple, kBlocks = LpnCode::kIndexBlocks;
  constexpr i64 kGroups = LpnOffsets<Wide>::kGroups;
  // Those of the next rows are made between the loads of these, which hides the loads' latency.
  alignas(64) crypto::Block offsets[2][kBlocks];
  LpnOffsets<Wide> made(code);
  for (i64 g = 0; g < kGroups; ++g) made.make(offsets[0] + g * made.kGroup);
  const auto* table = reinterpret_cast<const char*>(code.secret);
  const u64 one[2] = {1, 0};
  using Register = crypto::Wide128::Register;
  const u64 place[2] = {noise.hole, ~u64{0}};
  const Register keep = crypto::Wide128::load(&noise.keep), unit = crypto::Wide128::load(one);
  const Register hole = crypto::Wide128::load(place);
  Register number = crypto::Wide128::zero();
  for (i64 done = 0, tile = 0; done < count; done += kRows, tile ^= 1) {
    const auto* at = reinterpret_cast<const LpnWord*>(offsets[tile]);
    for (i64 g = 0, i = 0; g < kGroups; ++g) {
      made.make(offsets[tile ^ 1] + g * made.kGroup);
      for (; i * kGroups < (g + 1) * kRows; ++i, at += LpnCode::kWeight) {
        crypto::Block* row = rows + done + i;
        const Register bit = crypto::Wide128::both(crypto::Wide128::equal(number, hole), unit);
        number = crypto::Wide128::add(number, unit);
        Register sum = crypto::Wide128::exclusive_or(
            crypto::Wide128::both(crypto::Wide128::load(row), keep), bit);
        Register other = crypto::Wide128::load(table + at[0]);
        for (int j = 1; j < LpnCode::kWeight; j += 2)
          sum = crypto::Wide128::exclusive_or(sum, crypto::Wide128::load(table + at[j]));
        for (int j = 2; j < LpnCode::kWeight; j += 2)
          other = crypto::Wide128::exclusive_or(other, crypto::Wide128::load(table + at[j]));
        crypto::Wide128::store(row, crypto::Wide128::exclusive_or(sum, other));
      }
    }
  }
}

}  // namespace
}  // namespace privml::ot
