// SPDX-License-Identifier: Apache-2.0
// Products of one party's matrix of small weights with the other party's matrices of ring elements,
// each row of which fills one polynomial, so that weights are scalars of ciphertexts.
//
// Functionality  the evaluator holds weights (outputs x inner, signed), the key owner a message
//                (inner x columns, modulo 2^ring_bits) for each batch. They get shares modulo
//                2^(ring_bits + 1) of 2 weights * message + b, where b is 0 or 1 as noise decides,
//                but for choice.log2_failure. Whoever uses the shares drops the last bit exactly by
//                transfers, which make fresh shares (twopc/product/last_bit.h), so that noise
//                reaches nobody.
// Method         ciphertexts (c0, c1 = a) with c0 = 2^(log_q - ring_bits) m + e - a s, one for each
//                row; an answer is a sum of them times weights plus an encryption of zero, (p0 U,
//                p1 U + e'), with c1 rounded to 2^answer_bits. c1 alone is sent: c0 and c1 s are
//                shares of the result plus noise, and each party rounds its own down to
//                2^(ring_bits + 1), c0 plus 3/2 units of that. Noise is below half a unit, so that
//                the sum lies in [2 m + 1, 2 m + 2) units, and what is rounded down adds up to 2 m
//                or 2 m + 1. Uploads are rounded to 2^upload_bits, for bits below the noise that
//                answers may have say nothing, and have the used coefficients alone. The public
//                halves a, p1 serve all batches, and so do the halves c1 of the answers, which are
//                sent once: a batch has a key s, p0 and errors of its own.
// Leakage        nothing beyond shapes and bounds. To the evaluator: uploads and p0 of a batch are
//                samples of ring learning with errors under a key that serves this batch alone:
//                with public halves in common, batches are one sample each under many secrets. To
//                the key owner: c1 is hidden by p1 U + e', a sample of the same problem whose
//                secret U serves this answer of these weights alone and whose p1 both nonces
//                decide, so that no noise flooding is needed. What depends on U besides is p0 U,
//                which stays at the evaluator in c0. Another matrix of weights, or another a or p1,
//                needs other secrets U: c1 of two matrices under one U shows their difference.
//                Shares are not fresh, and what they add up to depends on noise: it must not be
//                opened.
// Assumption     parameters.h; transcript.h.
// Cost           halves_bytes() down, once; for each batch key_bytes() + upload_bytes() up.
// Source         Bae, Cheon, Hanrot, Park, Stehle, Plaintext-ciphertext matrix multiplication and
//                FHE bootstrapping (Crypto 2024), for products as matrix products of coefficients;
//                Huang, Lu, Hong, Ding, Cheetah (USENIX Security 2022), for re-randomised answers;
//                Peikert, Vaikuntanathan, Waters (Crypto 2008), for public halves in
//                common.
#pragma once

#include "base/wipe.h"
#include "lattice/sample.h"
#include "lattice/transcript.h"
#include "lattice/transform.h"

namespace privml::lattice {

// Batches that public halves serve.
inline constexpr i64 kMostBatches = i64{1} << 16;

// Of c1 of `count` answers; of p0.
i64 halves_bytes(const ColumnChoice& choice, i64 count);
i64 key_bytes(const RingSet& set);

// What follows works on several rows with up to `threads` threads, whose number changes nothing
// that is written: each row has randomness of its own.

// The key owner's side of one batch.
class KeyOwner {
 public:
  // Draws the key; `prg` must outlive the object.
  KeyOwner(const RingSet& set, const Digest& digest, crypto::Prg& prg);

  void write_key(MutableBytes out);
  // message + e - a s, of which the first `columns` coefficients are written; a is that of a public
  // seed that serves once under this key.
  void encrypt_words(crypto::Block seed, WordsView message, i64 columns, MutableBytes out);
  // All coefficients of it.
  Words encrypted(crypto::Block seed, WordsView message);
  const Small& secret() const { return small_; }
  // Rows of the message from number `first` on, of at most n ring elements each; each row once.
  void encrypt(i64 first, i64 rows, const ColumnChoice& choice, std::span<const u64> message,
               MutableBytes out, int threads = 1);
  // This party's shares of `count` answers with the halves `c1`, as many of each as it has columns.
  // Throws ProtocolError if the bytes are none.
  void shares_of(i64 count, const ColumnChoice& choice, Bytes c1, std::span<u64> share,
                 int threads = 1) const;
  // The half `c1` times the key, modulo 2^share_bits, rounded down.
  WipedVector<u64> times_key(const ColumnChoice& choice, Bytes c1) const;

 private:
  Words encrypted(crypto::Block seed, WordsView message, crypto::Prg& errors) const;
  void encrypt_row(i64 index, const ColumnChoice& choice, std::span<const u64> message,
                   crypto::Prg& errors, MutableBytes out) const;

  RingSet set_;
  Digest digest_;
  crypto::Prg& prg_;
  NegacyclicRing ring_, answers_;
  Small small_;
  Transformed secret_, negative_;
};

// c0 of a ciphertext as it is uploaded, of rounded numbers; the bytes of so many of them.
i64 upload_bytes(const ColumnChoice& choice, i64 numbers);
void write_upload(const ColumnChoice& choice, WordsView c0, MutableBytes out);
// Throws ProtocolError unless write_upload() could have written `in`.
void read_upload(const ColumnChoice& choice, Bytes in, WordsOutput out);

// The evaluator's shares of coefficients of c0, with what is added to one party's, rounded down.
void round_shares(const ColumnChoice& choice, WordsView c0, std::span<u64> share);
// An answer's half c1 before it is sent.
void write_rounded(const ColumnChoice& choice, WordsView c1, MutableBytes out);
void add_small(const Small& small, int low_bits, WordsOutput out);
void clear(WordsOutput words);

// Rows [first, first + rows) of weights of which no entry is above `largest` in absolute value.
struct WeightRows {
  std::span<const u64> words;  // rows x inner, signed
  i64 first = 0, rows = 0;
  u64 largest = 0;
};

// The evaluator's halves c1. `blinding` is secret and stands for U and e' of all answers: a new one
// for each digest and each matrix of weights.
class HalvesMaker {
 public:
  HalvesMaker(const ColumnChoice& choice, const Digest& digest, i64 inner, crypto::Block blinding);
  // Those of some rows, one after another.
  void write(const WeightRows& weights, MutableBytes out, int threads = 1) const;

 private:
  ColumnChoice choice_;
  i64 inner_;
  Secret<crypto::Block> blinding_;
  NegacyclicRing ring_;
  Transformed p1_;
  Words a_;
};

// The evaluator's side of one batch of `columns` columns.
class Evaluator {
 public:
  // `key` as write_key() wrote it, else ProtocolError.
  Evaluator(const ColumnChoice& choice, const WeightsShape& shape, i64 columns,
            crypto::Block blinding, Bytes key);

  // Ciphertext `index` of as many as the message has rows, all of which answer() needs. Throws
  // ProtocolError if the bytes are none.
  void read_ciphertext(i64 index, Bytes upload);
  // This party's shares of the answers to some rows, one after another (rows x columns).
  void answer(const WeightRows& weights, std::span<u64> share, int threads = 1) const;

 private:
  void finish(i64 index, WordsView c0, std::span<u64> share) const;

  ColumnChoice choice_;
  i64 inner_, columns_;
  Secret<crypto::Block> blinding_;
  NegacyclicRing ring_;
  Transformed p0_;
  Words c0_;
};

}  // namespace privml::lattice
