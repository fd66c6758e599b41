// SPDX-License-Identifier: Apache-2.0
#include "lattice/wide_parameters.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace privml::lattice {
namespace {

constexpr double kErrorVariance = kErrorPairs / 2.;
constexpr double kRoundingVariance = 1 / 12.;  // of a uniform error of one last place
constexpr double kImagesOfKeys = 20;           // that the keys of one level must save
// One key that serves several levels of images switches the upload for all of them alike, so that
// these noises are one; what factors can make of that, at most.
constexpr double kImagesAlike = 1.1;
constexpr int kFewestDropped = 10, kMostDropped = 13;  // bits of c1 below those of the ring

// Of one key switch, in units of 1 / q: errors of the keys times digits, and the rounding of what
// the keys encrypt times digits; and the secret times what lies below the digits.
double keys_variance(const WideSet& set) {
  const double n = static_cast<double>(set.ring.n);
  const double weight = static_cast<double>(most_secret_weight(set.ring.n));
  const double digits = 2 * 1.05 * 1.05 * std::exp2(2 * (set.digit_bits - 1));
  return digits * (n * kErrorVariance + weight / 4);
}
double below_variance(const WideSet& set) {
  const double weight = static_cast<double>(most_secret_weight(set.ring.n));
  return weight * kRoundingVariance * std::exp2(2 * (set.ring.log_q - 2 * set.digit_bits));
}

// Of what is rounded to 2^-bits and then to multiples of 1 / q, in units of that.
double twice_rounded(const RingSet& ring, int bits) {
  const double places = std::exp2(ring.log_q - bits) + 1;
  return kRoundingVariance * places * places;
}

}  // namespace

double SwitchingLevels::images(int levels, i64 outputs) const {
  i64 sum = 0;
  for (int level = 0; level < levels; ++level)
    sum += ceil_div(outputs, i64{1} << (levels - level)) * times(level);
  return static_cast<double>(sum);
}

int SwitchingLevels::switches(int first, int last) const {
  int sum = 0;
  for (int level = first; level < last; ++level) sum += times(level);
  return sum;
}

SwitchingLevels SwitchingLevels::with(int levels) const {
  SwitchingLevels best = *this;
  double least = -1;
  for (unsigned added = 0; added < 1U << levels; ++added) {
    const SwitchingLevels one{kept | added};
    if ((kept & added) != 0 || (levels > 0 && one.kept >> (levels - 1) == 0)) continue;
    const double price =
        one.images(levels, i64{1} << levels) + kImagesOfKeys * std::popcount(added);
    if (least >= 0 && price >= least) continue;
    least = price;
    best = one;
  }
  return best;
}

// An answer's noise is sum y_k e_k for the errors of uploads, U e + e' s of the encryption of zero,
// and for each level of packing the noise of a key switch, doubled by every level that follows; all
// in units of 1 / q. To that comes c1's rounding times s. Uploads' roundings and what lies below
// digits come from the same public halves: their deviations are added. Noise may take half of a bit
// below the ring's last one, since parties round their shares down to that bit.
double log2_failure(const WideChoice& choice, const WideBounds& bounds) {
  const RingSet& ring = choice.set.ring;
  const double weight = static_cast<double>(most_secret_weight(ring.n));
  double switches = 0;
  for (int level = 0; level < bounds.levels; ++level)
    switches += std::exp2(2 * level) * bounds.keys.times(level);
  const double zero = kErrorVariance * (static_cast<double>(ring.n) + weight);
  const double c1 = weight * twice_rounded(ring, choice.answer_bits);
  const double each = switches * keys_variance(choice.set) + zero + c1;
  const double images = kImagesAlike * bounds.images;
  const double rounded =
      std::sqrt(bounds.squares * twice_rounded(ring, choice.upload_bits)) +
      std::sqrt((bounds.answers * switches + images) * below_variance(choice.set));
  const double sum = bounds.squares * kErrorVariance + images * keys_variance(choice.set) +
                     rounded * rounded + bounds.answers * each;
  // From here on in units of 2^-ring_bits.
  const double variance = bounds.keys_joined * sum * std::exp2(2 * (choice.ring_bits - ring.log_q));
  const double room = 0.25 - std::exp2(-20);
  return 1 - room * room / (2 * variance) / std::log(2.);
}

std::optional<WideChoice> choose_wide(const WideSet& set, const WideBounds& bounds) {
  expect(bounds.ring_bits >= 1 && bounds.ring_bits <= 64 && bounds.squares > 0 &&
             bounds.answers >= 1 && bounds.levels >= 0 && bounds.levels <= kMostWideLevels &&
             bounds.images >= 0 && bounds.keys_joined >= 1,
         "lattice: a product's bounds must be positive");
  for (int dropped = kFewestDropped; dropped <= kMostDropped; ++dropped) {
    WideChoice choice{set, bounds.ring_bits, set.ring.log_q, bounds.ring_bits + dropped, 0};
    if (choice.answer_bits > set.ring.log_q) return std::nullopt;
    const auto serves = [&](int upload_bits) {
      choice.upload_bits = upload_bits;
      choice.log2_failure = log2_failure(choice, bounds);
      return choice.log2_failure <= kRequiredFailure;
    };
    if (!serves(choice.upload_bits)) continue;
    // More bits serve as well.
    int bits = choice.upload_bits;
    for (int least = bounds.ring_bits + 1; least < bits;) {
      const int middle = (least + bits) / 2;
      if (serves(middle))
        bits = middle;
      else
        least = middle + 1;
    }
    serves(bits);
    return choice;
  }
  return std::nullopt;
}

}  // namespace privml::lattice
