// SPDX-License-Identifier: Apache-2.0
// Random polynomials of lattice-based products.
//
// Leakage        none: time and memory access depend on lengths alone. A secret of too many places
//                is drawn again, which happens with probability 2^-76 and is told by time alone.
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
void sample_uniform(Prg& prg, int low_bits, WordsOutput out);
// Uniform in {-1, 0, 1}, each probability within 2^-63 of a third.
void sample_ternary(Prg& prg, std::span<signed char> out);
// Differences of the sums of kErrorPairs bits.
void sample_error(Prg& prg, std::span<signed char> out);
// Ternary with at most `most` places of n that are not zero, of which a secret must be likely to
// have fewer.
Small sample_secret(Prg& prg, i64 n, i64 most = kMaxSecretWeight);

}  // namespace privml::lattice
