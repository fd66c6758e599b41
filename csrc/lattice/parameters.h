// SPDX-License-Identifier: Apache-2.0
// Parameter sets of lattice-based products, and the choice among them from public numbers.
//
// Assumption  ring learning with errors in Z_q[X]/(X^n + 1), q = 2^log_q: a uniform ternary secret,
//             errors from the centred binomial distribution with eta = 21 (standard
//             deviation 3.24). Secrets of an odd number of places alone are taken (sample.h), which
//             is half of them: a bit of security at most.
// Security    kColumnSets states the levels; scripts/lattice_security.py estimates them anew and a
//             test holds the two together. The public lattice estimator's dual hybrid attack takes
//             up to 3 bits less. Every modulus is below the bound of the homomorphic encryption
//             standard for 128 bits and ternary secrets (2^109 for n = 4096).
// Exactness   a result is wrong with probability of at most 2^log2_failure: the noise is a sum of
//             bounded terms, so that its tail is that of a Gaussian (Hoeffding); nothing about the
//             weights goes in but their format and number. Rounding errors are terms like others:
//             what is rounded is a uniform polynomial times a unit, plus other things, so that they
//             are uniform and independent whatever is encrypted.
// Source      Security levels: M. Albrecht et al., Homomorphic Encryption Standard (2018), table 1;
//             Albrecht, Player, Scott, On the concrete hardness of learning with errors (J. Math.
//             Cryptology 2015) and its estimator.
#pragma once

#include <array>
#include <bit>
#include <optional>

#include "base/types.h"

namespace privml::lattice {

inline constexpr int kErrorPairs = 21;         // eta: an error is a sum of 21 differences of bits
inline constexpr i64 kMaxSecretWeight = 3034;  // places of a secret that are not zero; else redrawn
inline constexpr int kRequiredBits = 128;
inline constexpr double kRequiredFailure = -100;  // log2, for each value of a result

// Bits of security against the primal attack: its operations, and the exponent 0.292 of the block
// size alone (core-SVP), which leaves polynomial factors and memory out.
struct Security {
  double gates, core_svp;
};

struct RingSet {
  i64 n;
  int log_q;  // 64 to 80
  Security security;
  constexpr int low_bits() const { return log_q - 64; }
};

// For products whose weights are scalars (columns.h), the smallest modulus first.
inline constexpr std::array<RingSet, 4> kColumnSets{{{4096, 64, {233.0, 200.6}},
                                                     {4096, 72, {203.8, 171.4}},
                                                     {4096, 76, {191.5, 159.1}},
                                                     {4096, 80, {180.7, 148.3}}}};

// The largest log2 of a modulus that the standard allows at 128 bits; 0 for other dimensions.
int standard_modulus_bits(i64 n);

enum class Noise {
  tail,   // results are wrong with probability 2^-100 at most
  proved  // or never
};

// What is public about a product of `inner` terms with shares mod 2^ring_bits.
struct ProductBounds {
  i64 inner = 0;
  u64 weight = 0;  // the largest absolute value that the weights' format allows
  int ring_bits = 0;
};

u64 largest_weight(int bits, bool is_signed);

struct ColumnChoice {
  RingSet set;
  int dropped = 0;          // bits of c1 of an answer below those of the ring
  int answer_bits = 0;      // of c1: ring_bits + dropped
  int upload_bits = 0;      // of c0 of a message's ciphertext, at most log_q
  double log2_failure = 0;  // minus infinity if it cannot fail
  constexpr int ring_bits() const { return answer_bits - dropped; }
  constexpr int share_bits() const { return ring_bits() + 1; }  // the last one is to be dropped
};

// log2 of the bound on the probability that a result is wrong.
double log2_failure(const ColumnChoice& choice, const ProductBounds& bounds);
// The most that the noise can be whatever is drawn, in units of the last place of c1.
double largest_noise(const ColumnChoice& choice, const ProductBounds& bounds);

// The smallest set that serves; none if there is no such set. Throws InvalidArgument on bounds
// that are not positive.
std::optional<ColumnChoice> choose_columns(const ProductBounds& bounds, Noise noise);

// Products whose answers are packed (packed.h): 2^levels outputs in one polynomial, which costs as
// many bits of room, and the noise of switching keys besides.
inline constexpr RingSet kPackedSet = kColumnSets[1];
inline constexpr int kMostLevels = 7;

// The keys that packing needs, which serve many products of up to `levels` levels. Those of the
// levels in `kept` (a bit each, the highest among them) are there; the image of another level is
// that of the next kept one, taken several times. A key switch multiplies `digits` digits of
// `digit_bits` bits, the highest of a number; the bits below are rounded away.
struct SwitchingSet {
  int levels;
  unsigned kept;
  int digit_bits, digits;

  constexpr int kept_levels() const { return std::popcount(kept); }
  // The kept level that serves a level, and its number among the kept ones.
  constexpr int serving(int level) const { return level + std::countr_zero(kept >> level); }
  constexpr int number(int level) const {
    return std::popcount(kept & ((1U << serving(level)) - 1));
  }
  // How often its image is taken.
  constexpr int times(int level) const { return 1 << (serving(level) - level); }
  constexpr int digits_in_all() const { return digits * kept_levels(); }
};
// Fewer digits are of use in narrower rings, more levels for products of few rows, fewer keys where
// bytes count more than time, and more where time counts more. Keys of all levels make it cheap to
// pack few outputs, as those of large images. Digits of 13 bits are the longest that sums of
// transform.h are exact for.
inline constexpr std::array<SwitchingSet, 13> kSwitchingSets{{{5, 0b10000, 8, 8},
                                                              {5, 0b10100, 8, 8},
                                                              {7, 0b1010100, 8, 8},
                                                              {5, 0b10000, 11, 5},
                                                              {5, 0b10100, 11, 5},
                                                              {7, 0b1010100, 11, 5},
                                                              {5, 0b10000, 11, 4},
                                                              {5, 0b10100, 11, 4},
                                                              {7, 0b1010100, 11, 4},
                                                              {7, 0b1111100, 11, 5},
                                                              {7, 0b1111100, 11, 4},
                                                              {7, 0b1111111, 13, 4},
                                                              {7, 0b1111111, 11, 5}}};

struct PackedChoice {
  ColumnChoice columns;
  int levels = 0;
  i64 gap() const { return i64{1} << levels; }
};

double log2_failure(const PackedChoice& choice, const ProductBounds& bounds,
                    const SwitchingSet& keys);
// One ring for all products, so that keys serve many; none if it does not serve. levels is at
// most those of the keys.
std::optional<PackedChoice> choose_packed(const ProductBounds& bounds, int levels,
                                          const SwitchingSet& keys);

}  // namespace privml::lattice
