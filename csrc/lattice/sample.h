// SPDX-License-Identifier: Apache-2.0
// Random polynomials of lattice-based products.
//
// Leakage        none: time and memory access depend on lengths alone. A secret that does not serve
//                is drawn again, and nothing of it is used; time tells how often that happened.
// Source         Alkim, Ducas, Poeppelmann, Schwabe, Post-quantum key exchange (USENIX Security
//                2016), for centred binomial errors.
#pragma once

#include "base/buffer.h"
#include "crypto/prg.h"
#include "lattice/parameters.h"
#include "lattice/words.h"

namespace privml::lattice {

using Small = WipedVector<signed char>;

// Uniform modulo 2^(64 + low_bits).
void sample_uniform(crypto::Prg& prg, int low_bits, WordsOutput out);
// Uniform in {-1, 0, 1}, each probability within 2^-63 of a third.
void sample_ternary(crypto::Prg& prg, std::span<signed char> out);
// Differences of the sums of kErrorPairs bits.
void sample_error(crypto::Prg& prg, std::span<signed char> out);
// Ternary with an odd number of places that are not zero, of n at most `most`, which must be more
// than are likely. It is a unit modulo powers of two, so that its product with a uniform polynomial
// is uniform: rounding errors of such products are independent of each other and of the secret.
Small sample_secret(crypto::Prg& prg, i64 n, i64 most = kMaxSecretWeight);

}  // namespace privml::lattice
