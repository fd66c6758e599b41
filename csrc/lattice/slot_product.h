// SPDX-License-Identifier: Apache-2.0
// Products place by place modulo a prime, of numbers that the key owner knows and numbers that the
// evaluator knows.
//
// Functionality  the key owner holds x_i, the evaluator y_i, for i < n, both modulo a prime t. They
//                get shares modulo 1 of c_j / t and noise below 1 / (4 t), but for
//                choice.log2_failure, for the coefficients c_j of a polynomial whose values() are
//                the products x_i y_i modulo t. slot_shares() makes of them shares modulo 2 t of
//                2 c_j + b_j, where b_j is 0 or 1 as noise decides. Whoever uses these drops the
//                last bit exactly (twopc/product/slot_product.h), so that noise reaches nobody.
// Method         t is 1 modulo 2 n, so that a polynomial modulo t is given by its values at n
//                roots, which multiply place by place. The modulus q of ciphertexts is t times
//                other primes, and a message stands at q / t: it is zero modulo the others, so that
//                its values need no transform. The evaluator multiplies by a polynomial of numbers
//                about t / 2 at most. It keeps c0 as its share, and the key owner c1 s. In units of
//                1 / (2 t) the sum of both and 3/2 lies between 2 c_j + 1 and 2 c_j + 2, and that
//                of the shares rounded down is at most one less.
// Leakage        nothing beyond n and the number of products. To the evaluator uploads and the key
//                are samples of ring learning with errors; to the key owner U p1 + e' hides c1,
//                with U and e' fresh for each answer, and nothing else is sent.
// Assumption     slot_parameters.h; transcript.h.
// Cost           slot_key_bytes() up once; for each n products slot_upload_bytes() up and
//                slot_answer_bytes() down.
// Source         Smart, Vercauteren, Fully homomorphic SIMD operations (Designs, Codes and
//                Cryptography 2014), for values at roots; Fan, Vercauteren, Somewhat practical
//                fully homomorphic encryption (eprint 2012/144), for messages at q / t; shares of
//                the phase as in wide_product.h.
#pragma once

#include "lattice/residue_key.h"
#include "lattice/slot_parameters.h"
#include "lattice/transcript.h"

namespace privml::lattice {

i64 slot_key_bytes(const WideChoice& choice);
i64 slot_upload_bytes(const WideChoice& choice);
i64 slot_answer_bytes(const WideChoice& choice);

// Of shares modulo 1 those modulo twice the prime; one party, the first, adds what is added.
WipedVector<u64> slot_shares(std::span<const Torus> shares, u64 prime, bool first);

// Values of a polynomial modulo t at its n roots, in an order that the roots alone decide.
class Slots {
 public:
  Slots(i64 n, u64 prime);
  u64 prime() const { return prime_; }
  i64 n() const { return ring_.n(); }
  // Of n coefficients below the prime, in place.
  void values(std::span<u64> numbers) const;
  // As a transform holds up to n values below the prime; those that are missing are zero.
  Residues placed(std::span<const u64> values) const;
  // Coefficients, below 0.51 primes in absolute value, of what placed() gives.
  WipedVector<u64> coefficients(Residues placed) const;
  Residues product(const Residues& a, const Residues& b) const { return ring_.product(a, b); }

 private:
  u64 prime_;
  ResidueRing ring_;
  std::vector<u32> order_;  // where each slot stands
};

class SlotKeyOwner {
 public:
  // Draws the key; `prg` must outlive the object.
  SlotKeyOwner(const WideChoice& choice, const Digest& digest, crypto::Prg& prg);
  void write_key(MutableBytes out);
  // Up to n numbers below the prime; `number` serves once.
  void write_upload(i64 number, std::span<const u64> x, MutableBytes out);
  // This party's n shares. Throws ProtocolError if the bytes are none.
  TorusVector read_answer(Bytes answer) const;
  const Slots& slots() const { return slots_; }

 private:
  WideChoice choice_;
  Digest digest_;
  crypto::Prg& prg_;
  ResidueKey key_;
  Slots slots_;
  Residues unit_;  // q / t modulo t, at every place
};

class SlotEvaluator {
 public:
  // `key` as write_key() wrote it, else ProtocolError; `prg` must outlive the object.
  SlotEvaluator(const WideChoice& choice, const Digest& digest, Bytes key, crypto::Prg& prg);
  // Up to n numbers below the prime times those of upload `number`; this party's n shares. Throws
  // ProtocolError unless write_upload() could have written `upload`.
  TorusVector answer(i64 number, Bytes upload, std::span<const u64> y, MutableBytes out);
  const Slots& slots() const { return slots_; }

 private:
  WideChoice choice_;
  Digest digest_;
  crypto::Prg& prg_;
  ResidueRing ring_;
  ResiduePair key_;
  Slots slots_;
};

}  // namespace privml::lattice
