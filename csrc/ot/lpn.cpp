// SPDX-License-Identifier: Apache-2.0
#include "ot/lpn.h"

#include <array>

#include "base/error.h"
#include "base/multiversion.h"
#include "ot/field.h"

namespace privml {
namespace {

constexpr i64 kIndices = LpnCode::kWeight * LpnCode::kRowMultiple;
constexpr i64 kIndexBlocks = kIndices / 4;
typedef u32 Word __attribute__((may_alias));

// Random 32-bit words to places below `length`: the upper half of their product.
PRIVML_TARGET_CLONES
void scale(Word* words, u64 length) {
  for (i64 i = 0; i < kIndices; ++i) words[i] = static_cast<u32>(words[i] * length >> 32);
}

}  // namespace

LpnCode::LpnCode(Block seed, i64 secret) : generator_(seed), length_(static_cast<u64>(secret)) {
  expect(secret > 0 && secret < i64{1} << 32, "LpnCode: length out of range");
}

void LpnCode::add(u64 matrix, i64 first, const Block* secret, Block* rows, i64 count) const {
  expect(first % kRowMultiple == 0 && count % kRowMultiple == 0,
         "LpnCode::add: rows come in multiples of 64");
  alignas(64) std::array<Block, kIndexBlocks> random;
  auto* places = reinterpret_cast<Word*>(random.data());
  const BlockVector* table = as_vectors(secret);
  // Loads are independent, so the processor overlaps those of many rows by itself; prefetching and
  // sorting them were measured and gain nothing.
  for (i64 done = 0; done < count; done += kRowMultiple) {
    const u64 group = static_cast<u64>((first + done) / kRowMultiple);
    generator_.encrypt_counter({group * kIndexBlocks, matrix}, random.data(), kIndexBlocks);
    scale(places, length_);
    BlockVector* row = as_vectors(rows + done);
    for (i64 i = 0; i < kRowMultiple; ++i) {
      const Word* at = places + i * kWeight;
      BlockVector sum = row[i], other = table[at[0]];
      for (int j = 1; j < kWeight; j += 2) sum ^= table[at[j]];
      for (int j = 2; j < kWeight; j += 2) other ^= table[at[j]];
      row[i] = sum ^ other;
    }
  }
}

}  // namespace privml
