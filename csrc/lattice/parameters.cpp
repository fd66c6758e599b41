// SPDX-License-Identifier: Apache-2.0
#include "lattice/parameters.h"

#include <cmath>
#include <limits>

#include "base/error.h"

namespace privml::lattice {
namespace {

constexpr int kTailBits = 9;                   // of noise; fewer do not hold the rounding's tail
constexpr int kMostProvedBits = 13;            // from kTailBits on, the first number that suffices
constexpr double kRoundingVariance = 1 / 12.;  // Hoeffding's for a uniform error of one last place

// One unit of a ciphertext's noise, in units of an answer's last place.
double scale(const RingSet& set, const ProductBounds& bounds, int dropped) {
  return std::exp2(bounds.ring_bits + dropped - set.log_q);
}

bool has_room(const RingSet& set, const ProductBounds& bounds, int dropped) {
  return bounds.ring_bits + dropped <= 64 && bounds.ring_bits + dropped < set.log_q;
}

}  // namespace

int standard_modulus_bits(i64 n) {
  switch (n) {
    case 2048:
      return 54;
    case 4096:
      return 109;
    case 8192:
      return 218;
    default:
      return 0;
  }
}

u64 largest_weight(int bits, bool is_signed) {
  expect(bits >= 1 && bits <= 64, "lattice: weights have 1 to 64 bits");
  return is_signed ? u64{1} << (bits - 1) : low_mask(bits);
}

// An answer's noise is sum w_k e_k + U e + e' s of errors, times scale(), plus c1's rounding times
// s and c0's rounding. The last is bounded by a half; e and the errors of c1's rounding, which is
// that of a number independent of s, are subgaussian with the variances eta / 2 and 1 / 12.
double log2_failure(const RingSet& set, const ProductBounds& bounds, int dropped) {
  const double w = static_cast<double>(bounds.weight), n = static_cast<double>(set.n);
  const double squares = static_cast<double>(bounds.inner) * w * w + n + kMaxSecretWeight;
  const double unit = scale(set, bounds, dropped);
  const double variance =
      unit * unit * kErrorPairs / 2 * squares + kRoundingVariance * kMaxSecretWeight;
  const double room = std::exp2(dropped - 1) - 1.5;
  return 1 - room * room / (2 * variance) / std::log(2.);
}

double largest_noise(const RingSet& set, const ProductBounds& bounds, int dropped) {
  const double w = static_cast<double>(bounds.weight), n = static_cast<double>(set.n);
  const double terms = static_cast<double>(bounds.inner) * w + n + kMaxSecretWeight;
  return scale(set, bounds, dropped) * kErrorPairs * terms + (kMaxSecretWeight + 1) / 2.;
}

std::optional<ColumnChoice> choose_columns(const ProductBounds& bounds, Noise noise) {
  expect(bounds.inner >= 1 && bounds.weight >= 1 && bounds.ring_bits >= 1,
         "lattice: a product's bounds must be positive");
  for (const RingSet& set : kColumnSets) {
    if (noise == Noise::tail) {
      if (!has_room(set, bounds, kTailBits)) continue;
      const double failure = log2_failure(set, bounds, kTailBits);
      if (failure <= kRequiredFailure)
        return ColumnChoice{set, kTailBits, bounds.ring_bits + kTailBits, failure};
      continue;
    }
    for (int dropped = kTailBits; dropped <= kMostProvedBits; ++dropped) {
      if (has_room(set, bounds, dropped) &&
          largest_noise(set, bounds, dropped) <= std::exp2(dropped - 1) - 1)
        return ColumnChoice{set, dropped, bounds.ring_bits + dropped,
                            -std::numeric_limits<double>::infinity()};
    }
  }
  return std::nullopt;
}

// Packing doubles what is packed in each of its levels. The noises of a level's switches, each a
// sum of n times `digits` errors times digits, and of the secret times what was rounded away, reach
// a result by 4 coefficients for each level below. Digits are taken at their largest, three times
// their mean square, so that what they have in common does not matter.
double log2_failure_packed(const ProductBounds& bounds, int dropped, int levels,
                           const SwitchingSet& keys) {
  const RingSet& set = kPackedSet;
  const double w = static_cast<double>(bounds.weight), n = static_cast<double>(set.n);
  const double doubled = std::exp2(2 * levels);
  double switches = 0;
  for (int level = 0; level < levels; ++level) switches += std::exp2(2 * level) * keys.times(level);
  const double unit = scale(set, bounds, dropped);
  const double key = kErrorPairs / 2. * keys.digits * n * std::exp2(2 * (keys.digit_bits - 1));
  const int rounded_bits = set.log_q - keys.digits * keys.digit_bits;
  const double rounded = std::exp2(2 * rounded_bits) / 12 * kMaxSecretWeight;
  const double squares =
      kErrorPairs / 2. *
      (doubled * static_cast<double>(bounds.inner) * w * w + n + kMaxSecretWeight);
  const double variance =
      unit * unit * (squares + switches * (key + rounded)) + kRoundingVariance * kMaxSecretWeight;
  const double room = std::exp2(dropped - 1) - 1.5;
  return 1 - room * room / (2 * variance) / std::log(2.);
}

std::optional<PackedChoice> choose_packed(const ProductBounds& bounds, int levels,
                                          const SwitchingSet& keys) {
  expect(bounds.inner >= 1 && bounds.weight >= 1 && bounds.ring_bits >= 1,
         "lattice: a product's bounds must be positive");
  expect(levels >= 0 && levels <= keys.levels && keys.levels <= kMostLevels,
         "lattice: keys pack fewer levels");
  if (!has_room(kPackedSet, bounds, kTailBits) || bounds.ring_bits + levels > 64)
    return std::nullopt;
  const double failure = log2_failure_packed(bounds, kTailBits, levels, keys);
  if (failure > kRequiredFailure) return std::nullopt;
  return PackedChoice{{kPackedSet, kTailBits, bounds.ring_bits + kTailBits, failure}, levels};
}

}  // namespace privml::lattice
