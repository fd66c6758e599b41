// SPDX-License-Identifier: Apache-2.0
// A proof that bits under correlated OT add up to public sums.
//
// Statement  for pairs (x, y) of numbers whose bits the prover has as correlations t = q ^ bit *
//            Delta, and public s: s = x + y mod 2^k, that is c_0 = 0 and c_b ^ c_{b+1} ^ (x_b ^
//            s_b) (y_b ^ s_b) = 0 for the carries c_b = x_b ^ y_b ^ s_b.
// Method     a product u v ^ w = 0 holds iff q_u q_v ^ Delta q_w = t_u t_v ^ Delta (u t_v ^ v t_u ^
//            t_w) in GF(2^128); all are added up with random public coefficients, and the two sums
//            of the right side are opened under one more correlation of 128 bits as a mask.
// Soundness  2 / 2^127 over Delta and 2^-128 over the coefficients.
// Source     Yang, Sarkar, Weng, Wang, "QuickSilver" (CCS 2021), Fig. 5.
#pragma once

#include <array>

#include "base/wipe.h"
#include "crypto/gf128.h"
#include "crypto/prg.h"

namespace privml::spdz2k {

// t = (low bit: the bit itself) and q of a number's bits; stride apart, `bits` of them, further
// ones are 0.
struct BitRow {
  const crypto::Block* first;
  i64 stride;
  int bits;
  crypto::Block at(int b) const { return b < bits ? first[b * stride] : crypto::kZeroBlock; }
};

inline constexpr i64 kProofMasks = 128;  // correlations

class CarryProver {
 public:
  CarryProver(crypto::Block seed, int k) : coefficients_(seed), k_(k) {}
  // x and y are rows of t.
  void add(BitRow x, BitRow y, u64 sum);
  // masks: kProofMasks correlations t.
  std::array<crypto::Block, 2> finish(const crypto::Block* masks);

 private:
  crypto::Prg coefficients_;
  int k_;
  crypto::WideProduct constant_{}, linear_{};
};

class CarryVerifier {
 public:
  CarryVerifier(crypto::Block seed, int k, crypto::Block delta)
      : coefficients_(seed), k_(k), delta_(delta) {}
  // x and y are rows of q.
  void add(BitRow x, BitRow y, u64 sum);
  // masks: kProofMasks correlations q.
  bool verify(const crypto::Block* masks, const std::array<crypto::Block, 2>& proof);

 private:
  crypto::Prg coefficients_;
  int k_;
  Secret<crypto::Block> delta_;
  crypto::WideProduct products_{}, linear_{};
};

}  // namespace privml::spdz2k
