// SPDX-License-Identifier: Apache-2.0
// Parameter sets of products of ring elements with ring elements (wide_product.h), and the choice
// of the bits that are sent, from public numbers.
//
// Assumption  as parameters.h, with a modulus q that is a product of primes; and that a key's
//             images may be encrypted under it (circular security).
// Security    kWideSets states the levels; scripts/lattice_security.py estimates them anew and a
//             test holds the two together.
// Exactness   as parameters.h: log2_failure bounds the probability that a result is wrong.
//             Rounding errors of ciphertexts are those of numbers that are uniform under the
//             assumption, and subgaussian with it; so are those of uploads, whatever is encrypted,
//             as they are no finer than 1 / q. Whoever reads them rounds once more, to multiples of
//             1 / q, by an error that depends on the first one: their deviations are added.
// Source      parameters.h.
#pragma once

#include <bit>
#include <span>

#include "lattice/parameters.h"

namespace privml::lattice {

struct WideSet {
  RingSet ring;
  int moduli;  // primes of log_q / moduli bits
  std::array<u64, 3> primes;
  int digit_bits;  // of each of the two digits that a key switch multiplies
  std::span<const u64> used() const { return {primes.data(), static_cast<size_t>(moduli)}; }
};

// The smallest modulus first; primes are the largest that are 1 modulo 2^14.
inline constexpr std::array<WideSet, 4> kWideSets{
    {{{4096, 80, {180.7, 148.3}}, 2, {1099511480321, 1099510890497, 0}, 26},
     {{4096, 88, {162.3, 129.9}}, 2, {17592186028033, 17592185438209, 0}, 28},
     {{8192, 111, {275.4, 242.1}}, 3, {137438822401, 137438773249, 137438691329}, 36},
     {{8192, 144, {204.2, 170.8}}, 3, {281474976694273, 281474976546817, 281474976317441}, 46}}};

// Places of a secret that are not zero; a secret with more is drawn again, which happens with
// probability 2^-76.
constexpr i64 most_secret_weight(i64 n) { return n <= 4096 ? kMaxSecretWeight : 5888; }

// The keys of key switching that a party has, a bit for each level. The image of a level is that of
// the next level with a key, taken several times.
struct SwitchingLevels {
  unsigned kept = 0;
  // These and those that packing `levels` levels pays for.
  SwitchingLevels with(int levels) const;
  // Key switches of an answer that packs so many outputs.
  double images(int levels, i64 outputs) const;
  int serving(int level) const { return level + std::countr_zero(kept >> level); }
  int times(int level) const { return 1 << (serving(level) - level); }
  // Key switches of the images of all levels from `first` to before `last`, one of each.
  int switches(int first, int last) const;
};
inline constexpr int kMostWideLevels = 10;

// What is public about answers whose noises add up in one result.
struct WideBounds {
  int ring_bits = 0;
  // Of what a coefficient meets: the sum of inner * columns at once * largest^2, see parameters.h,
  // times 4 for each level whose images are those of uploads.
  double squares = 0;
  int answers = 1;  // of which each has halves c1 of its own
  int levels = 0;   // of packing outputs, at most
  SwitchingLevels keys{};
  // The sum of the squares times the key switches of an upload's image, the most of all images.
  double images = 0;
  // Products that the result is the sum of, each under a key of its own; none of the others has
  // more noise than this one.
  int keys_joined = 1;
};

struct WideChoice {
  WideSet set;
  int ring_bits = 0;
  int upload_bits = 0;  // of a coefficient of c0 of a message's ciphertext
  int answer_bits = 0;  // of a coefficient of c1 of an answer
  double log2_failure = 0;
};

// log2 of the bound on the probability that the noise of a result is 2^-(ring_bits + 2) or more.
double log2_failure(const WideChoice& choice, const WideBounds& bounds);
// None if the set does not serve.
std::optional<WideChoice> choose_wide(const WideSet& set, const WideBounds& bounds);

}  // namespace privml::lattice
