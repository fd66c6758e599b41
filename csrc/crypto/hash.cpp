// SPDX-License-Identifier: Apache-2.0
#include "crypto/hash.h"

namespace privml {

CorrelationRobustHash::CorrelationRobustHash(Block session_key) : permutation_(session_key) {}

void CorrelationRobustHash::hash(const Block* in, Block* out, i64 count) const {
  permutation_.encrypt_feedforward(in, out, count);
}

void CorrelationRobustHash::expand(const Block* in, i64 count, i64 blocks, Block* out) const {
  if (blocks == 1) return hash(in, out, count);
  for (i64 i = 0; i < count; ++i) {
    Block seed;
    hash(in + i, &seed, 1);
    for (i64 j = 0; j < blocks; ++j) out[i * blocks + j] = {seed.lo ^ static_cast<u64>(j), seed.hi};
    hash(out + i * blocks, out + i * blocks, blocks);
  }
}

}  // namespace privml
