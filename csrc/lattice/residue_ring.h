// SPDX-License-Identifier: Apache-2.0
// Polynomials modulo X^n + 1 and a product q of primes, as residues, transformed or not.
//
// Method         number-theoretic transforms modulo each prime (transform_loops.h). Numbers divided
//                by q come and go as fixed-point numbers modulo 1 (torus.h): x / q is the sum of
//                x (q / p)^-1 mod p over p, and back, q t less its fraction is an integer of which
//                the fraction alone is needed modulo p.
// Leakage        none: time and memory access depend on n and the primes alone.
// Source         transform.h, for the arithmetic; Halevi, Polyakov, Shoup, An improved RNS variant
//                of the BFV homomorphic encryption scheme (CT-RSA 2019), for numbers out of
//                residues by their fractions.
#pragma once

#include <vector>

#include "base/cpu.h"
#include "crypto/prg.h"
#include "lattice/torus.h"
#include "lattice/transform.h"

namespace privml::lattice {

inline constexpr int kMostModuli = 3;

// One prime after another, n residues each.
using Residues = WipedVector<double>;
using TorusVector = WipedVector<Torus>;

// Two polynomials, such as a ciphertext's halves.
struct ResiduePair {
  Residues c0, c1;
};

struct ResidueMultipliers;
struct ResidueKernels;

class ResidueRing {
 public:
  // n is a power of two, 16 to 8192; primes are distinct, of 20 to 48 bits, and 1 modulo 2 n.
  // Throws InvalidArgument on other values, and if this processor does not support the backend.
  ResidueRing(i64 n, std::span<const u64> primes, Backend backend = best_backend());
  ~ResidueRing();
  ResidueRing(ResidueRing&&) noexcept;

  i64 n() const { return n_; }
  int moduli() const { return static_cast<int>(primes_.size()); }
  i64 size() const { return n_ * moduli(); }  // of Residues
  int prime_bits(int i) const;

  // In place; of the first `used` coefficients, a power of two, where the others are zero.
  void transform(std::span<double> a, i64 used) const;
  void restore(std::span<double> a) const;

  // Of transformed polynomials: a b; the sum of a[k] b[k], added to `out` or, if that is `fresh`,
  // put there; with v = a b, difference = sum - v and sum += v.
  Residues product(const Residues& a, const Residues& b) const;
  void add_products(std::span<const Residues* const> a, std::span<const Residues* const> b,
                    bool fresh, Residues& out) const;
  void combine(const Residues& a, const Residues& b, Residues& sum, Residues& difference) const;
  // Sums of up to eight residues come back below 0.51 primes.
  void reduce(Residues& a) const { add_products({}, {}, false, a); }
  // The sum of pairs[k] times the transformed polynomial (r, k), of which the coefficients but the
  // first `used`, a power of two of at least 16, are zero, is added to out[r] or, if that is
  // `fresh`, put there. `first`: these, for each prime row by row, as words() gives them.
  void multiply_rows(std::span<const ResiduePair> pairs, std::span<const double> first, i64 used,
                     bool fresh, std::span<ResiduePair> out) const;
  // X^power, transformed, for any power.
  Residues monomial(i64 power) const;
  // Where the places of a transformed polynomial come from under X -> X^power, for odd powers.
  std::vector<u32> places(i64 power) const;
  void move(const Residues& a, std::span<const u32> places, Residues& out) const;
  void add_moved(const Residues& a, std::span<const u32> places, Residues& out) const;

  // Coefficients, not transformed.
  Residues of_small(std::span<const signed char> small) const;
  void add_small(std::span<const signed char> small, Residues& out) const;
  // Coefficients, eights of them, one prime after another: numbers in two's complement divided by
  // 2^halvings modulo q, halvings up to 13.
  void words(std::span<const u64> words, int halvings, std::span<double> out) const;
  Residues uniform(crypto::Block seed) const;
  // The integers nearest to q t; and x / q, within 2^-140.
  Residues of_torus(std::span<const Torus> t) const;
  TorusVector to_torus(const Residues& a) const;
  // a / q is first / 2^bits + second / 2^(2 bits) + rest modulo 1. The rest is 2^(-2 bits) at most,
  // digits are 1.05 times 2^(bits - 1) at most; each stands as one polynomial's coefficients for
  // each prime. bits is 46 at most, and less than the primes have.
  void digits(const Residues& a, int bits, Residues& first, Residues& second) const;

  // Residues on the wire: of each prime n numbers of as many bits as it has.
  i64 bytes() const;
  void write(const Residues& a, MutableBytes out) const;
  // Throws ProtocolError unless write() could have written `in`.
  Residues read(Bytes in) const;

 private:
  i64 n_;
  std::vector<u64> primes_;
  const TransformKernels* transforms_;
  const ResidueKernels* kernels_;
  std::vector<Roots> roots_;
  std::vector<ResidueMultipliers> torus_multipliers_;              // by prime
  std::vector<std::vector<ResidueMultipliers>> word_multipliers_;  // by halvings and prime
  std::array<u64, 3> modulus_{};                                   // q, the lowest word first
  std::vector<std::array<u64, 4>> reciprocals_;                    // 2^256 / p, as modulus_
};

}  // namespace privml::lattice
