// SPDX-License-Identifier: Apache-2.0
#include "lattice/parameters.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"

namespace privml::lattice {
namespace {

constexpr int kTailBits = 10;        // dropped; fewer do not hold the rounding's tail
constexpr int kMostProvedBits = 14;  // from kTailBits on, the first number that suffices
constexpr double kErrorVariance = kErrorPairs / 2.;
constexpr double kRoundingVariance = 1 / 12.;  // of a uniform error of one last place
// Mean square of what is rounded away of numbers that are multiples of any power of two: it is
// largest if they are multiples of half a place, when errors are none or a half.
constexpr double kTieMeanSquare = 1 / 8.;

// One unit of a ciphertext's noise, in units of the last place of c1 of an answer.
double scale(const ColumnChoice& choice) {
  return std::exp2(choice.answer_bits - choice.set.log_q);
}

// The last place that an upload is rounded to, in units of a ciphertext's noise; 0 if it is not.
double last_place(const ColumnChoice& choice) {
  const int rounded = choice.set.log_q - choice.upload_bits;
  return rounded > 0 ? std::exp2(rounded) : 0;
}

// Of an uploaded number, its rounding; in units of a ciphertext's noise.
double upload_rounding(const ColumnChoice& choice) {
  return kRoundingVariance * last_place(choice) * last_place(choice);
}

// Of c1 times the secret. Halves are rounded up, so that errors have a mean, half of a ciphertext's
// unit; the secret's signs make it part of the variance.
double c1_rounding(const ColumnChoice& choice) {
  return kRoundingVariance * (1 + 2 * scale(choice) * scale(choice)) * kMaxSecretWeight;
}

// Noise may be as large as half of a bit below the ring's last one, to which both parties round
// their shares down; a last place and a half are left free. Weights whose absolute values sum up to
// `weights` meet the mean of what uploads are rounded by, half of a ciphertext's unit.
double room(const ColumnChoice& choice, double weights) {
  const double mean = last_place(choice) > 0 ? scale(choice) * weights / 2 : 0;
  return std::exp2(choice.dropped - 2) - 1.5 - mean;
}

double log2_tail(double room, double variance) {
  if (room <= 0) return 0;
  return 1 - room * room / (2 * variance) / std::log(2.);
}

bool has_room(const ColumnChoice& choice) {
  return choice.answer_bits <= 64 && choice.answer_bits < choice.set.log_q;
}

ColumnChoice unrounded(const RingSet& set, const ProductBounds& bounds, int dropped) {
  return {set, dropped, bounds.ring_bits + dropped, set.log_q, 0};
}

// Rounds uploads to the fewest bits, more than `least`, with which the choice still serves.
template <class Serves>
void round_uploads(ColumnChoice& choice, int least, Serves&& serves) {
  for (int bits = choice.upload_bits - 1; bits > least; --bits) {
    const int before = std::exchange(choice.upload_bits, bits);
    if (serves()) continue;
    choice.upload_bits = before;
    break;
  }
  serves();
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

// An answer's noise is sum w_k (e_k + r_k) + U e + e' s of errors e and uploads' roundings r, times
// scale(), plus c1's rounding times s. Errors are subgaussian with the variance eta / 2, roundings
// with 1 / 12 about their mean. Uploads are uniform by a_k s, c1 by U p1: one is independent of the
// other, and of s.
double log2_failure(const ColumnChoice& choice, const ProductBounds& bounds) {
  const double w = static_cast<double>(bounds.weight), n = static_cast<double>(choice.set.n);
  const double inner = static_cast<double>(bounds.inner);
  const double squares = inner * w * w * (kErrorVariance + upload_rounding(choice)) +
                         kErrorVariance * (n + kMaxSecretWeight);
  const double variance = scale(choice) * scale(choice) * squares + c1_rounding(choice);
  return log2_tail(room(choice, inner * w), variance);
}

double largest_noise(const ColumnChoice& choice, const ProductBounds& bounds) {
  const double w = static_cast<double>(bounds.weight), n = static_cast<double>(choice.set.n);
  const double weights = static_cast<double>(bounds.inner) * w;
  return scale(choice) *
             (kErrorPairs * (weights + n + kMaxSecretWeight) + last_place(choice) / 2 * weights) +
         kMaxSecretWeight / 2.;
}

std::optional<ColumnChoice> choose_columns(const ProductBounds& bounds, Noise noise) {
  expect(bounds.inner >= 1 && bounds.weight >= 1 && bounds.ring_bits >= 1,
         "lattice: a product's bounds must be positive");
  const int most = noise == Noise::tail ? kTailBits : kMostProvedBits;
  for (const RingSet& set : kColumnSets)
    for (int dropped = kTailBits; dropped <= most; ++dropped) {
      ColumnChoice choice = unrounded(set, bounds, dropped);
      const auto serves = [&] {
        if (noise == Noise::proved) {
          choice.log2_failure = -std::numeric_limits<double>::infinity();
          return largest_noise(choice, bounds) <= room(choice, 0);
        }
        choice.log2_failure = log2_failure(choice, bounds);
        return choice.log2_failure <= kRequiredFailure;
      };
      if (!has_room(choice) || !serves()) continue;
      round_uploads(choice, bounds.ring_bits, serves);
      return choice;
    }
  return std::nullopt;
}

// Packing doubles what is packed in each of its levels. The noises of a level's switches, each a
// sum of n times `digits` errors times digits, and of the secret times what was rounded away, reach
// a result by 4 coefficients for each level below. Digits are taken at their largest, three times
// their mean square, so that what they have in common does not matter. What lies below the digits
// and the roundings of uploads come from the same public halves: their deviations are added. Public
// halves are multiples of a power of two if all weights are.
double log2_failure(const PackedChoice& choice, const ProductBounds& bounds,
                    const SwitchingSet& keys) {
  const ColumnChoice& columns = choice.columns;
  const RingSet& set = columns.set;
  const double w = static_cast<double>(bounds.weight), n = static_cast<double>(set.n);
  const double doubled = std::exp2(2 * choice.levels);
  double switches = 0;
  for (int level = 0; level < choice.levels; ++level)
    switches += std::exp2(2 * level) * keys.times(level);
  const double key = kErrorVariance * keys.digits * n * std::exp2(2 * (keys.digit_bits - 1));
  const int rounded_bits = set.log_q - keys.digits * keys.digit_bits;
  const double below = kTieMeanSquare * std::exp2(2 * rounded_bits) * kMaxSecretWeight;
  const double inner = static_cast<double>(bounds.inner), weights = doubled * inner * w * w;
  const double rounded =
      std::sqrt(weights * upload_rounding(columns)) + std::sqrt(switches * below);
  const double squares =
      rounded * rounded + switches * key + kErrorVariance * (weights + n + kMaxSecretWeight);
  const double variance = scale(columns) * scale(columns) * squares + c1_rounding(columns);
  return log2_tail(room(columns, std::sqrt(doubled) * inner * w), variance);
}

std::optional<PackedChoice> choose_packed(const ProductBounds& bounds, int levels,
                                          const SwitchingSet& keys) {
  expect(bounds.inner >= 1 && bounds.weight >= 1 && bounds.ring_bits >= 1,
         "lattice: a product's bounds must be positive");
  expect(levels >= 0 && levels <= keys.levels && keys.levels <= kMostLevels,
         "lattice: keys pack fewer levels");
  PackedChoice choice{unrounded(kPackedSet, bounds, kTailBits), levels};
  const auto serves = [&] {
    choice.columns.log2_failure = log2_failure(choice, bounds, keys);
    return choice.columns.log2_failure <= kRequiredFailure;
  };
  if (!has_room(choice.columns) || bounds.ring_bits + levels > 64 || !serves()) return std::nullopt;
  // Messages stand `levels` bits lower.
  round_uploads(choice.columns, bounds.ring_bits + levels, serves);
  return choice;
}

}  // namespace privml::lattice
