// SPDX-License-Identifier: Apache-2.0
// Products in Z[X]/(X^n + 1) of polynomials modulo 2^(64 + low_bits) with polynomials of small
// coefficients, exact.
//
// Method         number-theoretic transforms modulo two primes of 48 bits. The true coefficients
//                are below 2^94, so that both residues determine them. Residues are doubles: a
//                fused multiply-add gives the low half of a product, so that one source serves AVX2
//                and AVX-512. The portable twin computes with integers.
// Leakage        none: time and memory access depend on n alone.
// Source         P. Longa, M. Naehrig, Speeding up the number theoretic transform (CANS 2016), for
//                the loops; J. van der Hoeven, G. Lecerf, G. Quintin, Modular SIMD arithmetic in
//                Mathemagix (TOMS 2016), for products in doubles.
#pragma once

#include <array>

#include "base/cpu.h"
#include "lattice/words.h"

namespace privml::lattice {

inline constexpr int kPrimes = 2;
// The largest that are 1 modulo 2^15.
inline constexpr std::array<i64, kPrimes> kPrime{281474976546817, 281474976317441};

// A polynomial's residues under the transforms modulo both primes, in an order of the backend's
// own.
using Transformed = std::array<WipedVector<double>, kPrimes>;

// What a transform multiplies with, modulo one prime; each number is followed, in an array of its
// own, by its quotient by the prime. The last log2(lanes) layers have a root for each lane.
struct Multiplier {
  double value = 0, quotient = 0;
};
struct Roots {
  double prime = 0, inverse = 0;  // and 1 / prime
  AlignedVector<double> forward, forward_quotient, backward, backward_quotient;
  Multiplier unit;         // 2^(32 + low_bits): of the upper half of a number's high word
  Multiplier of_degree;    // 1 / n
  Multiplier last;         // the last root / n
  Multiplier first_prime;  // 1 / the first prime, modulo the second
};
struct TransformKernels;
struct ResidueKernels;

class NegacyclicRing {
 public:
  // n is a power of two, 16 to 8192. Throws InvalidArgument on other values, and where this
  // processor does not support the backend.
  NegacyclicRing(i64 n, int low_bits, Backend backend = best_backend());

  i64 n() const { return n_; }
  int low_bits() const { return low_bits_; }

  // Of n coefficients.
  Transformed transform(WordsView words) const;
  Transformed transform(std::span<const signed char> small) const;
  // Of integers below 2^40 in absolute value, the first coefficients, a power of two of them, of a
  // polynomial that has no others; `out` may have served before.
  void transform(std::span<const double> integers, Transformed& out) const;
  // out += a * b modulo X^n + 1 and 2^(64 + low_bits), of words and of small coefficients, which
  // are at most 2^15 / n in absolute value; in either order. out has n coefficients.
  void add_product(const Transformed& a, const Transformed& b, WordsOutput out) const;
  // out += the sum of a[i] * b[i], whose true coefficients must be below 2^94: which those of
  // uniform words of 72 bits and eight times bytes, or five times numbers of 11 bits, are, but with
  // probability 2^-1000, and those of such words and four times numbers of 13 bits but with 2^-180
  // (Hoeffding).
  void add_products(std::span<const Transformed> a, std::span<const Transformed> b,
                    WordsOutput out) const;

  // sum += the sum of a[i] * b[i], where a sum begins without coefficients; and out += that sum,
  // which is used up. The bound on true coefficients is that of add_products().
  void multiply_add(std::span<const Transformed* const> a, std::span<const Transformed* const> b,
                    Transformed& sum) const;
  void add(Transformed& sum, WordsOutput out) const;

 private:
  i64 n_;
  int low_bits_;
  const TransformKernels* kernels_;
  const ResidueKernels* residues_;
  std::array<Roots, kPrimes> roots_;
};

}  // namespace privml::lattice
