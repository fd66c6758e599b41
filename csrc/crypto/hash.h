// SPDX-License-Identifier: Apache-2.0
// Correlation-robust hash from fixed-key AES: H(x) = pi(x) ^ x (MMO) for single outputs, and an
// expansion to several blocks (Guo, Katz, Wang, Yu: eprint 2019/074, sections 7.2 and 7.4).
// The key is drawn per session by both parties together, so work on one session does not help
// another.
#pragma once

#include "crypto/aes.h"

namespace privml::crypto {

class CorrelationRobustHash {
 public:
  explicit CorrelationRobustHash(Block session_key);

  // out[i] = H(in[i]); inputs must be unpredictable and pairwise distinct over the session
  // (correlated OT outputs, each used once). `in` and `out` may be the same array.
  void hash(const Block* in, Block* out, i64 count) const;

  // out[i * blocks + j] = j-th expansion block of in[i]; blocks >= 1. For blocks == 1 equals
  // hash().
  void expand(const Block* in, i64 count, i64 blocks, Block* out) const;

 private:
  Aes128 permutation_;
};

}  // namespace privml::crypto
