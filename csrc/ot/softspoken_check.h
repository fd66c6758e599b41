// SPDX-License-Identifier: Apache-2.0
// The consistency check of SoftSpoken OT against a dishonest receiver (Roy, "SoftSpokenOT", Crypto
// 2022, section 4.3: the check of subspace VOLE with the repetition code).
//
// Statement  In every element i of the offset the sender's rows are w_i = v_i ^ a_i * Delta_i (bit
//            by bit of Delta_i), where the receiver knows v_i and has chosen the bits a_i by its
//            message. An honest receiver takes the same a_i = u in all elements.
// Check      h is a random F_2-linear hash of rows to F_{2^128} (gf128.h): blocks of 128 columns
//            times uniform coefficients, summed, plus one block of columns that is used for nothing
//            else and hides the rest. The receiver sends h(u) and a digest of all h(v_r); the
//            sender compares the digest of h(w_r) ^ Delta_r * h(u), r = 0 .. 127.
// Challenge  Fiat-Shamir: the coefficients of a slice are drawn from a hash of everything the
//            receiver has sent so far: session, direction, seeds' message with its proofs, earlier
//            extensions and this one up to and including the slice. So an extension stays one
//            message, and slices are hashed while they are in cache. The block that hides comes
//            with the first slice, before any coefficient is known.
// Soundness  Let h(u) be what was sent. The digest binds the sent values (BLAKE2b, random oracle).
//            In an element with h(a_i) != h(u) acceptance determines Delta_i: the receiver has
//            guessed it. Two elements with h(a_i) = h(a_j) but a_i != a_j: take the last slice
//            where they differ; everything else was fixed before its coefficients were drawn, and a
//            non-zero vector times uniform coefficients hits the one bad value with probability
//            2^-128. Over at most 128 * 127 / 2 pairs and Q hash queries of an attacker that is
//            Q * 2^-115. So all elements that were not guessed share one u, and in the others the
//            receiver can correct v_i itself: the correlation holds.
// Leakage    a dishonest receiver may guess any set of elements and lets the sender abort unless
//            all guesses are right: g bits of Delta become known with probability 2^-g and the
//            attempt ends in SecurityAbort otherwise (the ideal functionality of the paper allows
//            this; after an abort the offset must not be used again).
#pragma once

#include <array>
#include <span>

#include "base/buffer.h"
#include "crypto/gf128.h"
#include "ot/softspoken_rows.h"

namespace privml::ot {

using CheckDigest = std::array<u8, 32>;

// What the receiver appends to an extension.
struct SoftSpokenProof {
  crypto::Block choices;  // h(u)
  CheckDigest digest;     // of h(v_0) .. h(v_127)
};
inline constexpr i64 kSoftSpokenProofBytes = 48;
static_assert(sizeof(SoftSpokenProof) == kSoftSpokenProofBytes);

// Columns of an extension that hide the rest; they come first.
inline constexpr i64 kSoftSpokenHidingColumns = 128;

class SoftSpokenCheck {
 public:
  // `context` names session and direction, `seeds` is the seeds' message.
  SoftSpokenCheck(Bytes context, Bytes seeds);

  // A public key that is drawn from the seeds' message, as the challenges are; before begin().
  crypto::Block offset_key() const;

  void begin();
  // Takes the message of the next slice, then draws the coefficients of its blocks.
  void absorb(Bytes message, i64 blocks);
  // Adds the slice's blocks of all 128 rows, `stride` blocks apart, or of the choices.
  void add_rows(const crypto::Block* rows, i64 stride);
  void add_choices(const crypto::Block* choices);

  // Receiver: ends the extension.
  SoftSpokenProof prove();
  // Sender: ends the extension; whether the proof holds.
  bool verify(const SoftSpokenProof& proof, crypto::Block delta);

 private:
  CheckDigest digest(std::span<const crypto::Block> hashes) const;
  void absorb_proof(const SoftSpokenProof& proof);

  CheckDigest chain_;  // hash of everything sent so far
  bool first_ = true;
  AlignedVector<crypto::Block> coefficients_;
  WipedVector<crypto::WideProduct> rows_;
  crypto::WideProduct choices_{};
};

}  // namespace privml::ot
