// SPDX-License-Identifier: Apache-2.0
// Products of one party's matrix of small weights with the other party's matrix of ring elements,
// each row of which fills one polynomial, so that weights are scalars of ciphertexts.
//
// Functionality  the evaluator holds weights (outputs x inner, signed), the key owner a message
//                (inner x columns, modulo 2^ring_bits). They get shares modulo 2^answer_bits of
//                2^dropped (weights * message) + 2^(dropped - 1) + noise, whose noise is below
//                2^(dropped - 1) in absolute value but for choice.log2_failure. Whoever uses the
//                shares drops these bits exactly (truncate_reduce), so that noise reaches nobody.
// Method         ciphertexts (c0, c1 = a) with c0 = 2^(log_q - ring_bits) m + e - a s, one for each
//                row; an answer is a sum of them times weights plus a fresh encryption of zero, (p0
//                U, p1 U + e'), rounded to 2^answer_bits, with c0 masked by a number uniform modulo
//                2^answer_bits. c0 has the used coefficients alone.
// Leakage        nothing beyond shapes and bounds. To the evaluator: uploads and p0 are samples of
//                ring learning with errors under a key that serves this product alone. To the key
//                owner: c0 is uniform by its mask; c1 is hidden by p1 U + e', a sample of the same
//                problem whose secret U is fresh for each answer and whose p1 both nonces decide,
//                so that no noise flooding is needed.
// Assumption     parameters.h; transcript.h.
// Cost           key_bytes() + upload_bytes() up, answer_bytes() down.
// Source         Bae, Cheon, Hanrot, Park, Stehle, Plaintext-ciphertext matrix multiplication and
//                FHE bootstrapping (Crypto 2024), for products as matrix products of coefficients;
//                Huang, Lu, Hong, Ding, Cheetah (USENIX Security 2022), for re-randomised answers
//                with masks.
#pragma once

#include "lattice/sample.h"
#include "lattice/transcript.h"
#include "lattice/transform.h"

namespace privml::lattice {

// Of p0; of the c0 of `count` ciphertexts with `columns` used coefficients; of one answer.
i64 key_bytes(const ColumnChoice& choice);
i64 upload_bytes(const ColumnChoice& choice, i64 count, i64 columns);
i64 answer_bytes(const ColumnChoice& choice, i64 columns);

class KeyOwner {
 public:
  // Draws the key; `prg` must outlive the object.
  KeyOwner(const ColumnChoice& choice, const Digest& digest, Prg& prg);

  void write_key(MutableBytes out);
  // Row `index` of the message, of at most n ring elements; each once.
  void encrypt(i64 index, std::span<const u64> message, MutableBytes out);
  // This party's shares of an answer. Throws ProtocolError where the bytes are no answer.
  void decrypt(Bytes answer, std::span<u64> share) const;

 private:
  void encrypt_into(Block seed, std::span<const u64> message, i64 columns, MutableBytes out);

  ColumnChoice choice_;
  Digest digest_;
  Prg& prg_;
  NegacyclicRing ring_, answers_;
  Transformed secret_, negative_;
};

class Evaluator {
 public:
  // For a message of inner x columns. `key` as write_key() wrote it, else ProtocolError; `prg` must
  // outlive the object.
  Evaluator(const ColumnChoice& choice, const Digest& digest, i64 inner, i64 columns, Bytes key,
            Prg& prg);

  // Ciphertext `index` of as many as the message has rows, all of which answer() needs. Throws
  // ProtocolError where the bytes are none.
  void read_ciphertext(i64 index, Bytes upload);
  // Answers to `rows` rows of weights (rows x inner, |w| <= largest) one after another, and this
  // party's shares (rows x columns).
  void answer(std::span<const u64> weights, i64 rows, u64 largest, MutableBytes out,
              std::span<u64> share);

 private:
  void finish(WordsOutput c0, WordsOutput c1, MutableBytes out, std::span<u64> share);

  ColumnChoice choice_;
  Digest digest_;
  Prg& prg_;
  i64 inner_, columns_;
  NegacyclicRing ring_;
  Transformed p0_, p1_;
  Words c0_, c1_;
};

}  // namespace privml::lattice
