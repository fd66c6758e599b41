// SPDX-License-Identifier: Apache-2.0
// Products as those of columns.h whose answers are packed, for messages of few rows.
//
// Functionality  as columns.h, with a message of rows x inner. 2^levels (the gap) entries of a row
//                stand side by side in one polynomial, and so do 2^levels outputs in an answer: for
//                rows * gap <= n.
// Method         an output is a sum of shifted ciphertexts times scalars: coefficient m * gap of
// X^-k
//                times the ciphertext is entry k of row m. Of two such outputs that are valid at
//                multiples of 2h, E + X^h O + tau(E - X^h O), tau: X -> X^(n/h + 1), is valid at
//                multiples of h and twice as large; so 2^levels outputs become one ciphertext.
//                tau's image is under another key, and is switched back by encryptions of tau(s)
//                times powers of two, with which the digits of c1 are multiplied. Keys of some
//                levels suffice: tau of level l - 1 is that of level l, taken twice. Since messages
//                stand `levels` bits lower, no inverse of two is needed. Answers are re-randomised
//                and masked after all of that.
// Leakage        as columns.h; one key serves many products, up to kMostPackedProducts, each with
//                public halves of its own, and U is fresh for each answer.
// Assumption     as columns.h; and that the key's own images may be encrypted under it (circular
//                security).
// Cost           switching_bytes() up once for each key; for each product packed_upload_bytes() up
//                and packed_answer_bytes() for each 2^levels outputs down.
// Source         Chen, Dai, Kim, Song, Efficient homomorphic conversion between (ring) LWE
//                ciphertexts (ACNS 2021), for packing; Huang, Lu, Hong, Ding, Cheetah, and Lu et
//                al., BumbleBee (NDSS 2025), for interleaved outputs.
#pragma once

#include "lattice/columns.h"

namespace privml::lattice {

inline constexpr i64 kMostPackedProducts = i64{1} << 12;

// Of the key and of what switches keys; of the used coefficients of all ciphertexts of a message;
// of an answer.
i64 switching_bytes(const SwitchingSet& set);
i64 packed_upload_bytes(const PackedChoice& choice, i64 rows, i64 inner);
i64 packed_answer_bytes(const PackedChoice& choice, i64 rows);
// Digits of numbers that an owner multiplies with keys to pack so many outputs.
i64 switched_digits(const SwitchingSet& set, int levels, i64 outputs);

// The client's side: what key() lacks.
void write_switching_keys(KeyOwner& key, const Digest& digest, const SwitchingSet& set,
                          MutableBytes out);
// Message of rows x inner, as product number `product` of that key; of each number once.
void write_packed(KeyOwner& key, const Digest& digest, const PackedChoice& choice, i64 product,
                  std::span<const u64> message, i64 rows, MutableBytes out);
// This party's shares of an answer: rows x gap.
void read_packed(const KeyOwner& key, const PackedChoice& choice, i64 rows, Bytes answer,
                 std::span<u64> share);

// What the owner of the weights keeps of a key.
class SwitchingKeys {
 public:
  // `keys` as write_switching_keys() wrote them, else ProtocolError.
  SwitchingKeys(const Digest& digest, const SwitchingSet& set, Bytes keys);

  const NegacyclicRing& ring() const { return ring_; }
  const Transformed& p0() const { return p0_; }
  const Transformed& p1() const { return p1_; }
  const Digest& digest() const { return digest_; }
  // (c0, c1) += the ciphertext with tau for h = 2^level, applied to (c0, c1) = (a0, a1).
  void add_image(int level, WordsView a0, WordsView a1, WordsOutput c0, WordsOutput c1) const;

 private:
  void add_switched(int level, WordsView a0, WordsView a1, WordsOutput c0, WordsOutput c1) const;

  Digest digest_;
  SwitchingSet set_;
  NegacyclicRing ring_;
  Transformed p0_, p1_;
  std::vector<Transformed> c0_, c1_;  // set_.digits for each kept level
};

// One product at the owner of the weights.
class PackedEvaluator {
 public:
  // `upload` as write_packed() wrote it, else ProtocolError; keys and prg must outlive the object.
  PackedEvaluator(const SwitchingKeys& keys, const PackedChoice& choice, i64 product, i64 rows,
                  i64 inner, Bytes upload, Prg& prg);
  // The answers to some rows of weights (outputs), 2^levels in each, and this party's shares: rows
  // x gap for each answer.
  void answer(const WeightRows& weights, MutableBytes out, std::span<u64> share) const;

 private:
  struct Ciphertext {
    Words c0, c1;
  };
  void finish(Ciphertext packed, MutableBytes out, std::span<u64> share) const;
  Ciphertext pack(std::span<Ciphertext> outputs, i64 first, i64 stride) const;

  const SwitchingKeys& keys_;
  PackedChoice choice_;
  i64 rows_, inner_;
  Prg& prg_;
  Words c0_, c1_;  // inner x rows, the multiples of the gap; inner x n
};

}  // namespace privml::lattice
