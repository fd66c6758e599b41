// SPDX-License-Identifier: Apache-2.0
// The code of silent OT: learning parity with noise in its primal form, with a sparse random matrix
// and regular noise (Yang, Weng, Lan, Zhang, Wang, "Ferret", CCS 2020, section 5).
//
// Assumption  for random bits s and a vector e with one random 1 in each block of 2^depth entries,
//             A s ^ e looks random, where each row of the public matrix A has ten ones in random
//             places. docs/correlations.md states why these sets have 128 bits of security;
//             scripts/lpn_security.py computes it.
#pragma once

#include "crypto/aes.h"
#include "ot/kernels.h"

namespace privml::ot {

struct LpnParameters {
  i64 secret;  // length of s
  i64 trees;   // blocks of noise, a tree each
  int depth;   // of a tree; at least 6

  constexpr i64 leaves() const { return i64{1} << depth; }
  constexpr i64 samples() const { return trees * leaves(); }
  // Correlated OTs that the trees' choices take.
  constexpr i64 choices() const { return trees * depth; }
};

// One iteration, and the smaller one that makes the first iteration's correlations.
inline constexpr LpnParameters kLpnMain{163840, 1170, 11};
inline constexpr LpnParameters kLpnSetup{38912, 346, 9};

class LpnCode {
 public:
  static constexpr int kWeight = 10;
  static constexpr i64 kRowMultiple = 64;

  static constexpr i64 kIndexBlocks = kWeight * kRowMultiple / 4;

  // `seed` is public and agreed on by both parties; secret < 2^28.
  LpnCode(crypto::Block seed, i64 secret, crypto::AesBackend backend = crypto::best_aes_backend());

  // rows[i] ^= row first + i of the matrix of number `matrix`, times `secret`. `first` and `count`
  // are multiples of kRowMultiple.
  void add(u64 matrix, i64 first, const crypto::Block* secret, crypto::Block* rows,
           i64 count) const;

  // The same from leaves of trees: first clears the rows' lowest bits but that of row `hole` of
  // these, which it sets. Neither branches nor addresses depend on the hole.
  void encode(u64 matrix, i64 first, const crypto::Block* secret, u64 hole, crypto::Block* rows,
              i64 count) const;

 private:
  void add_rows(u64 matrix, i64 first, const crypto::Block* secret, const RowNoise& noise,
                crypto::Block* rows, i64 count) const;

  crypto::Aes128 generator_;
  u64 length_;
};

}  // namespace privml::ot
