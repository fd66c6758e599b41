// SPDX-License-Identifier: Apache-2.0
// Noise of products where the planner leaves the least room for it.
#include "lattice/testing/noise.h"

#include <gtest/gtest.h>

#include <optional>

namespace privml::lattice {
namespace {

using namespace lattice::testing;

void expect_within(const NoiseSum& noise, const ColumnChoice& choice) {
  const auto [deviation, room] = bound_of(choice);
  EXPECT_LE(noise.deviation(), deviation);
  EXPECT_GE(noise.deviation(), deviation / 4);  // the bound is not loose
  EXPECT_LT(noise.largest, room / 2);
}

// The largest inner dimension up to `most` that `choose` serves; 0 if there is none.
template <class Choose>
i64 largest_inner(ProductBounds bounds, i64 most, Choose&& choose) {
  i64 inner = 0;
  for (i64 step = most; step > 0; step /= 2)
    while (inner + step <= most) {
      bounds.inner = inner + step;
      if (!choose(bounds)) break;
      inner += step;
    }
  return inner;
}

TEST(Noise, OfColumnsIsBoundedWhereEachModulusEnds) {
  for (const int ring_bits : {24, 33, 41, 45, 49, 53}) {
    for (const int weight_bits : {1, 9, 16}) {
      ProductBounds bounds{0, largest_weight(weight_bits, true), ring_bits};
      const auto choose = [](const ProductBounds& of) { return choose_columns(of, Noise::tail); };
      bounds.inner = largest_inner(bounds, 400, choose);
      if (bounds.inner == 0) continue;
      const ColumnChoice choice = choose(bounds).value();
      NoiseSum noise;
      // Of several keys: the answers of one batch have the errors of its ciphertexts in common.
      for (const int batch : {0, 1, 2})
        measure_columns(choice, bounds, 1, static_cast<u64>(ring_bits + 100 * batch), noise);
      EXPECT_EQ(noise.count, 3 * 4096);
      SCOPED_TRACE(std::to_string(ring_bits) + " " + std::to_string(weight_bits));
      expect_within(noise, choice);
      NoiseSum of_rows;
      measure_columns(choice, bounds, 3, static_cast<u64>(ring_bits), of_rows);
      EXPECT_LT(of_rows.largest, bound_of(choice).room / 2);
    }
  }
}

TEST(Noise, OfPackedProductsIsBoundedWhereEachSetOfKeysEnds) {
  for (const SwitchingSet& set : kSwitchingSets)
    for (const int levels : {0, 2, set.levels}) {
      const auto choose = [&](const ProductBounds& of) { return choose_packed(of, levels, set); };
      ProductBounds bounds{20, largest_weight(8, true), 54};
      while (!choose(bounds)) --bounds.ring_bits;
      bounds.inner = largest_inner(bounds, 60, choose);
      const PackedChoice choice = choose(bounds).value();
      NoiseSum noise;
      measure_packed(choice, bounds, set, 2, static_cast<u64>(bounds.ring_bits), noise);
      SCOPED_TRACE(std::to_string(bounds.ring_bits) + " " + std::to_string(levels));
      expect_within(noise, choice.columns);
    }
}

// With so many bits of answers that their rounding hides no other noise.
PackedChoice fine(int levels) {
  constexpr int kRingBits = 20;
  const int answer_bits = 65 - levels;
  return {{kPackedSet, answer_bits - kRingBits, answer_bits, kPackedSet.log_q, 0}, levels};
}

double bound_of_switches(const PackedChoice& choice, const ProductBounds& bounds,
                         const SwitchingSet& set) {
  ColumnChoice columns = choice.columns;
  columns.log2_failure = log2_failure(choice, bounds, set);
  return bound_of(columns).deviation;
}

TEST(Noise, OfKeySwitchesIsBoundedWhereItIsTheLargest) {
  const ProductBounds bounds{4, 1, 20};
  for (const SwitchingSet& set : kSwitchingSets)
    for (const int levels : {1, set.levels}) {
      const PackedChoice choice = fine(levels);
      NoiseSum noise;
      measure_packed(choice, bounds, set, 8, 5, noise);
      const double bound = bound_of_switches(choice, bounds, set);
      SCOPED_TRACE(std::to_string(set.digit_bits) + " " + std::to_string(levels));
      EXPECT_LE(noise.deviation(), 1.05 * bound);  // of a sample
      EXPECT_GE(noise.deviation(), bound / 2);     // digits are taken at their largest
    }
}

// What a switch rounds away of such public halves is nothing or a half, more on average than of
// uniform ones.
TEST(Noise, OfAKeySwitchIsBoundedForMultiplesOfHalfOfTheLowestDigit) {
  constexpr SwitchingSet set{1, 0b1, 11, 5};
  constexpr int rounded_bits = kPackedSet.log_q - set.digits * set.digit_bits;
  const ProductBounds bounds{1, u64{1} << (rounded_bits - 1), 20};
  const PackedChoice choice = fine(1);
  NoiseSum noise;
  measure_packed(choice, bounds, set, 8, 7, noise);
  EXPECT_LE(noise.deviation(), 1.05 * bound_of_switches(choice, bounds, set));
}

// Tests of the test: a bound that takes an image once that is taken sixteen times; an upload with a
// bit less than it needs has noise that the bound forbids.
TEST(Noise, OfRepeatedImagesExceedsTheBoundOfOne) {
  const ProductBounds bounds{4, 1, 20};
  const PackedChoice choice = fine(1);
  const SwitchingSet repeated = kSwitchingSets[0], once{1, 0b1, 8, 8};
  ASSERT_EQ(repeated.times(0), 16);
  NoiseSum noise;
  measure_packed(choice, bounds, repeated, 1, 6, noise);
  EXPECT_GT(noise.deviation(), bound_of_switches(choice, bounds, once));
}
TEST(Noise, OfUploadsThatAreTooShortExceedsTheBound) {
  const ProductBounds bounds{100, largest_weight(12, true), 40};
  ColumnChoice choice = choose_columns(bounds, Noise::tail).value();
  choice.upload_bits -= 2;
  NoiseSum noise;
  measure_columns(choice, bounds, 1, 9, noise);
  EXPECT_GT(noise.deviation(), bound_of(choice).deviation);
}

}  // namespace
}  // namespace privml::lattice
