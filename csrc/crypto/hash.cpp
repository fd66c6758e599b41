// SPDX-License-Identifier: Apache-2.0
#include "crypto/hash.h"

#include <algorithm>
#include <array>

namespace privml {

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
    for (i64 i = 0; i < n; ++i) {
      for (i64 j = 0; j < blocks; ++j) {
        tile[i * blocks + j] = {seeds[i].lo ^ static_cast<u64>(j), seeds[i].hi};
      }
    }
    hash(tile, tile, n * blocks);
  }
}

}  // namespace privml
