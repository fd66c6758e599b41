// SPDX-License-Identifier: Apache-2.0
#include "crypto/hash.h"

#include <algorithm>
#include <array>

namespace privml::crypto {
namespace {

// A block as a vector: compilers take blocks of two words apart and put them together again.
typedef u64 Vector __attribute__((vector_size(16), may_alias));

// tile[i * blocks + j] = seeds[i] ^ j; `constant` is `blocks` if that is known while compiling.
template <i64 constant>
[[gnu::always_inline]] inline void spread_seeds(const Block* seeds, i64 count, i64 blocks,
                                                Block* tile) {
  const i64 each = constant > 0 ? constant : blocks;
  const auto* from = reinterpret_cast<const Vector*>(seeds);
  auto* to = reinterpret_cast<Vector*>(tile);
  for (i64 i = 0; i < count; ++i) {
    for (i64 j = 0; j < each; ++j) *to++ = from[i] ^ Vector { static_cast<u64>(j), 0 };
  }
}

void spread(const Block* seeds, i64 count, i64 blocks, Block* tile) {
  if (blocks == 2) return spread_seeds<2>(seeds, count, blocks, tile);
  if (blocks == 4) return spread_seeds<4>(seeds, count, blocks, tile);
  spread_seeds<0>(seeds, count, blocks, tile);
}

}  // namespace

CorrelationRobustHash::CorrelationRobustHash(Block session_key) : permutation_(session_key) {}

void CorrelationRobustHash::hash(const Block* in, Block* out, i64 count) const {
  permutation_.encrypt_feedforward(in, out, count);
}

void CorrelationRobustHash::expand(const Block* in, i64 count, i64 blocks, Block* out) const {
  if (blocks == 1) return hash(in, out, count);
  // Several inputs at a time, so that short expansions fill the AES pipeline and long ones stay in
  // cache.
  constexpr i64 kSeeds = 64, kTileBlocks = 1024;
  const i64 tile_size = std::clamp<i64>(kTileBlocks / blocks, 1, kSeeds);
  std::array<Block, kSeeds> seeds;
  for (i64 done = 0; done < count; done += tile_size) {
    const i64 n = std::min(tile_size, count - done);
    hash(in + done, seeds.data(), n);
    Block* tile = out + done * blocks;
    spread(seeds.data(), n, blocks, tile);
    hash(tile, tile, n * blocks);
  }
}

}  // namespace privml::crypto
