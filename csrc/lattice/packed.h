// SPDX-License-Identifier: Apache-2.0
// Products as those of columns.h whose answers are packed, for messages of few positions.
//
// Functionality  as columns.h, with a message of rows x positions. Output o has at place p the sum
//                over terms t of weight (o, t) times what stands `shift` after p in the term's row:
//                a matrix product has one term a row, without shifts; a convolution has its taps.
// Method         2^levels (the gap) rows stand side by side in one polynomial, and so do 2^levels
//                outputs in an answer, for positions * gap <= n: coefficient p * gap of X^-k times
//                the ciphertext is entry p of row k, and X^-(k + shift * gap) times it the one that
//                stands `shift` after it. An output is a sum of ciphertexts times polynomials of
//                weights; c0, of which few coefficients matter, is computed with matrix products of
//                these, and c1 by number-theoretic transforms if a polynomial has many weights.
//                Of two such outputs that are valid at multiples of 2h, E + X^h O + tau(E - X^h O),
//                tau: X -> X^(n/h + 1), is valid at multiples of h and twice as large; so 2^levels
//                outputs become one ciphertext. tau's image is under another key, and is switched
//                back by encryptions of tau(s) times powers of two, with which the digits of c1 are
//                multiplied. Keys of some levels suffice: tau of level l - 1 is that of level l,
//                taken twice. Since messages stand `levels` bits lower, no inverse of two is
//                needed. Answers are re-randomised after all of that, and c1 alone is sent; c0 and
//                c1 s are rounded as in columns.h.
// Leakage        as columns.h; one key serves many products, up to kMostPackedProducts, each with
//                public halves of its own, and U is fresh for each answer.
// Assumption     as columns.h; and that the key's own images may be encrypted under it (circular
//                security).
// Cost           switching_bytes() up once for each key; for each message packed_upload_bytes() up
//                and packed_answer_bytes() for each 2^levels outputs down, or fewer.
// Source         Chen, Dai, Kim, Song, Efficient homomorphic conversion between (ring) LWE
//                ciphertexts (ACNS 2021), for packing; Huang, Lu, Hong, Ding, Cheetah, for taps as
//                shifts, and Lu et al., BumbleBee (NDSS 2025), for interleaved outputs.
#pragma once

#include "lattice/columns.h"

namespace privml::lattice {

inline constexpr i64 kMostPackedProducts = i64{1} << 12;

// What an output has of a row of the message, for each of its weights.
struct Term {
  i64 row = 0, shift = 0;
};

// What is public about products of messages, each of `rows` x `positions`, with the same weights.
struct PackedShape {
  i64 rows = 0, positions = 0;
  i64 outputs = 0, groups = 1;  // each of them has its own share of rows and of outputs
  u64 largest = 0;              // weight, in absolute value
  std::vector<Term> terms;      // of the first group; the rows of others follow
  std::vector<i64> places;      // positions at which outputs are asked for
  i64 inner() const { return std::ssize(terms); }
  i64 count() const { return std::ssize(places); }
};
// Of rows x inner times inner x outputs: row p of the factor is position p.
PackedShape matrix_product(i64 rows, i64 inner, i64 outputs, u64 largest);

// Where output i of an answer stands among 2^levels: its bits reversed, so that neighbours are
// packed first, and those of an answer that is not full soon become few. And back.
i64 reversed(i64 i, int levels);

// Of the key and of what switches keys; of a message; of an answer.
i64 switching_bytes(const SwitchingSet& set);
i64 packed_upload_bytes(const PackedChoice& choice, const PackedShape& shape);
i64 packed_answer_bytes(const PackedChoice& choice);
// Digits of numbers that an owner multiplies with keys to pack so many outputs.
i64 switched_digits(const SwitchingSet& set, int levels, i64 outputs);
// The evaluator's work for c1 of one output of `messages` messages, in products of words: by
// transforms, if they take less and are exact, or as a matrix product.
i64 c1_work(const PackedChoice& choice, const PackedShape& shape, i64 messages);

// The client's side: what key() lacks.
void write_switching_keys(KeyOwner& key, const Digest& digest, const SwitchingSet& set,
                          MutableBytes out);
// Which messages a product has; each number of a product serves once under a key.
struct MessageNumber {
  i64 product = 0, message = 0;
};
// A message, rows x positions.
void write_packed(KeyOwner& key, const Digest& digest, const PackedChoice& choice,
                  const PackedShape& shape, MessageNumber number, std::span<const u64> message,
                  MutableBytes out);
// This party's shares of an answer: outputs x places.
void read_packed(const KeyOwner& key, const PackedChoice& choice, const PackedShape& shape,
                 Bytes answer, std::span<u64> share);

// What the owner of the weights keeps of a key.
class SwitchingKeys {
 public:
  // `keys` as write_switching_keys() wrote them, else ProtocolError.
  SwitchingKeys(const Digest& digest, const SwitchingSet& set, Bytes keys);

  const NegacyclicRing& ring() const { return ring_; }
  const Transformed& p0() const { return p0_; }
  const Transformed& p1() const { return p1_; }
  const Digest& digest() const { return digest_; }
  // What add_image() computes with, kept from one call to the next.
  struct Space {
    WipedVector<u64> rounded = WipedVector<u64>(kPackedSet.n);
    WipedVector<double> digit = WipedVector<double>(kPackedSet.n);
    std::vector<Transformed> digits;
    Transformed sum;
  };
  // (c0, c1) += the ciphertext with tau for h = 2^level, applied to (c0, c1) = (a0, a1).
  void add_image(int level, WordsView a0, WordsView a1, WordsOutput c0, WordsOutput c1,
                 Space& space) const;

 private:
  void add_switched(int level, WordsView a0, WordsView a1, WordsOutput c0, WordsOutput c1,
                    Space& space) const;

  Digest digest_;
  SwitchingSet set_;
  NegacyclicRing ring_;
  Transformed p0_, p1_;
  std::vector<Transformed> c0_, c1_;  // set_.digits for each kept level
};

// Some messages of one product at the owner of the weights.
class PackedEvaluator {
 public:
  // `uploads` as write_packed() wrote them for messages `first` and those after it, else
  // ProtocolError; all references must outlive the object.
  PackedEvaluator(const SwitchingKeys& keys, const PackedChoice& choice, const PackedShape& shape,
                  MessageNumber first, Bytes uploads);
  i64 messages() const { return messages_; }
  // The answers to some outputs, 2^levels in each, of every message, re-randomised by `prg`, and
  // this party's shares: outputs x places for each answer. The first output is a multiple of
  // 2^levels. Threads may answer at the same time.
  void answer(const WeightRows& weights, crypto::Prg& prg, MutableBytes out,
              std::span<u64> share) const;

 private:
  struct Ciphertext {
    Words c0, c1;
  };
  void sum_at_places(const WeightRows& weights, i64 message, WordsOutput c0) const;
  void add_transformed(const WeightRows& weights, std::span<Words> c1) const;
  void multiply_publics(const WeightRows& weights, i64 message, WordsOutput c1) const;
  void move_publics(i64 message, i64 group, i64 first, WordsOutput moved) const;
  void finish(Ciphertext packed, i64 outputs, crypto::Prg& prg, MutableBytes out,
              std::span<u64> share) const;
  Ciphertext pack(std::span<Ciphertext> outputs, i64 place, i64 stride,
                  SwitchingKeys::Space& space) const;

  const SwitchingKeys& keys_;
  const PackedChoice& choice_;
  const PackedShape& shape_;
  i64 messages_;
  Words c0_;                              // messages x rows x positions
  std::vector<Words> c1_;                 // of all ciphertexts of a message, for each message,
  std::vector<Transformed> transformed_;  // or their transforms, times X^-span_of(...)
};

}  // namespace privml::lattice
