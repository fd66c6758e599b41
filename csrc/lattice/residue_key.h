// SPDX-License-Identifier: Apache-2.0
// Keys of ciphertexts modulo a product of primes: what wide_product.h and slot_product.h have in
// common.
//
// Functionality  with the secret s a ciphertext (c0, c1 = a) of m is (m + e - a s, a), for a public
//                uniform a of its own and an error e; the public key is one of zero, (p0, p1), and
//                (p0 U, p1 U + e') is another that hides U and e'.
// Assumption     wide_parameters.h.
#pragma once

#include "lattice/residue_ring.h"
#include "lattice/sample.h"
#include "lattice/wide_parameters.h"

namespace privml::lattice {

struct ResidueKey {
  // Draws the secret.
  ResidueKey(const WideSet& set, crypto::Prg& prg);
  // e - a s for the a of this seed, not transformed; `message`, unless it is empty, is added before
  // the polynomial is restored.
  Residues encryption(crypto::Block seed, crypto::Prg& prg, const Residues& message = {}) const;
  // c1 s of a half c1 as it was sent, not transformed.
  TorusVector times_secret(std::span<const Torus> c1) const;

  ResidueRing ring;
  Small small;
  Residues secret, negative;
};

// What hides an answer: uniform in {-1, 0, 1}, and an error.
struct Blinding {
  Blinding(crypto::Prg& prg, i64 n);
  Small u, error;
};

// Adds (p0 U, p1 U + e') to a transformed ciphertext, which is not transformed afterwards.
void blind(const ResidueRing& ring, const ResiduePair& key, const Blinding& by, ResiduePair& out);

Residues transformed(const ResidueRing& ring, Residues a);

}  // namespace privml::lattice
