// SPDX-License-Identifier: Apache-2.0
#include "lattice/packed.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "base/testing/sanitized.h"

namespace privml::lattice {
namespace {

struct Case {
  i64 rows, inner, outputs;
  int levels;
  SwitchingSet set = kSwitchingSets[1];
};

struct Outcome {
  bool exact = true;
  i64 zeros = 0, ones = 0;  // last bits, in which the noise is
};

Outcome run(const PackedChoice& choice, const Case& size, int weight_bits, bool extreme, u64 seed) {
  const auto& [rows, inner, outputs, levels, set] = size;
  const int bits = choice.columns.share_bits(), ring_bits = choice.columns.ring_bits();
  const u64 largest = largest_weight(weight_bits, true);
  std::mt19937_64 random(seed);
  std::vector<u64> weights(outputs * inner), message(rows * inner);
  for (u64& w : weights) {
    w = static_cast<u64>(to_signed(random(), weight_bits));
    if (extreme) w = random() % 2 ? u64{0} - largest : largest - 1;
  }
  for (u64& m : message) m = random() & low_mask(ring_bits);
  crypto::Prg client({seed, 1}), owner({seed, 2});
  const Digest digest{};
  KeyOwner key(kPackedSet, digest, client);
  const PackedShape shape = matrix_product(rows, inner, outputs, largest);
  std::vector<u8> keys(switching_bytes(set)), upload(packed_upload_bytes(choice, shape));
  write_switching_keys(key, digest, set, keys);
  const SwitchingKeys switching(digest, set, keys);
  std::vector<u64> lying(message.size());
  for (i64 m = 0; m < rows; ++m)
    for (i64 k = 0; k < inner; ++k) lying[k * rows + m] = message[m * inner + k];
  Outcome outcome;
  for (const i64 product : {0, 1}) {
    write_packed(key, digest, choice, shape, {product, 0}, lying, upload);
    const PackedEvaluator evaluator(switching, choice, shape, {product, 0}, upload);
    const i64 gap = choice.gap();
    for (i64 first = 0; first < outputs; first += gap) {
      const i64 count = std::min(gap, outputs - first);
      std::vector<u8> answer(packed_answer_bytes(choice));
      std::vector<u64> mine(count * rows), theirs(count * rows);
      evaluator.answer(
          {std::span(weights).subspan(first * inner, count * inner), first, count, largest}, owner,
          answer, theirs);
      read_packed(key, choice, shape, answer, mine);
      for (i64 m = 0; m < rows; ++m)
        for (i64 i = 0; i < count; ++i) {
          u64 expected = 0;
          for (i64 k = 0; k < inner; ++k)
            expected += weights[(first + i) * inner + k] * message[m * inner + k];
          const u64 sum = (mine[i * rows + m] + theirs[i * rows + m]) & low_mask(bits);
          outcome.exact = outcome.exact && (sum >> 1) == (expected & low_mask(ring_bits));
          (sum & 1 ? outcome.ones : outcome.zeros) += 1;
        }
    }
  }
  return outcome;
}

PackedChoice chosen(const Case& size, int weight_bits, int ring_bits) {
  return choose_packed({size.inner, largest_weight(weight_bits, true), ring_bits}, size.levels,
                       size.set)
      .value();
}

// With half of the room for noise.
PackedChoice halved(PackedChoice choice) {
  choice.columns.dropped -= 1;
  choice.columns.answer_bits -= 1;
  return choice;
}

TEST(Packed, ExactForEveryGapAndShape) {
  for (int levels = 0; levels <= kMostLevels; ++levels)
    for (const Case& size : {Case{1, 1, 1, levels},
                             {4096 >> levels, 5, 3, levels},
                             {3, (i64{2} << levels) + 1, (i64{1} << levels) + 1, levels}}) {
      Case of = size;
      of.set = kSwitchingSets[levels > 5 ? 2 : 1];
      EXPECT_TRUE(run(chosen(of, 8, 32), of, 8, false, 1).exact)
          << levels << " " << size.rows << " " << size.inner;
    }
}

// The widest ring that each set of keys serves, with the largest weights: exact with half of the
// room for noise, too.
TEST(Packed, ExactWithEveryKindOfKeys) {
  for (const SwitchingSet& set : kSwitchingSets)
    for (const int levels : {set.levels, set.levels - 1, 1}) {
      const Case size{2, 40, i64{1} << levels, levels, set};
      int ring_bits = 55;
      while (!choose_packed({size.inner, largest_weight(8, true), ring_bits}, levels, set))
        --ring_bits;
      const PackedChoice choice = chosen(size, 8, ring_bits);
      EXPECT_TRUE(run(choice, size, 8, true, 7).exact) << levels << " " << ring_bits;
      if (!privml::testing::kSanitized) {
        EXPECT_TRUE(run(halved(choice), size, 8, true, 7).exact) << levels << " " << ring_bits;
      }
      EXPECT_GE(ring_bits, set.digits * set.digit_bits < 50 ? 24 : 32);
    }
}

// A level without a key of its own takes the image of the next one with a key repeatedly.
TEST(Packed, KeysOfSomeLevelsServeTheOthers) {
  constexpr SwitchingSet set{7, 0b1010100, 8, 8};
  EXPECT_EQ(set.kept_levels(), 3);
  EXPECT_EQ(set.serving(6), 6);
  EXPECT_EQ(set.times(6), 1);
  EXPECT_EQ(set.serving(5), 6);
  EXPECT_EQ(set.times(5), 2);
  EXPECT_EQ(set.number(5), 2);
  EXPECT_EQ(set.serving(0), 2);
  EXPECT_EQ(set.times(0), 4);
  EXPECT_EQ(set.number(0), 0);
  EXPECT_EQ(switched_digits({5, 0b11111, 8, 8}, 5, 32), 31 * 8);
  EXPECT_EQ(switched_digits({5, 0b10000, 8, 8}, 5, 64), 2 * 5 * 16 * 8);
  EXPECT_EQ(switched_digits({5, 0b11111, 8, 8}, 5, 1), 5 * 8);
  EXPECT_EQ(switched_digits({5, 0b11111, 8, 8}, 5, 35), (31 + 2 + 4) * 8);
  for (const SwitchingSet& each : kSwitchingSets) {
    EXPECT_LE(each.levels, kMostLevels);
    EXPECT_EQ(each.serving(each.levels - 1), each.levels - 1);
    EXPECT_LE(each.digits * each.digit_bits, 64);
  }
}

TEST(Packed, ExactWithTheLargestWeightsAndNoiseBelowHalfOfItsBound) {
  const Case size{128, 768, 32, 5};
  const Outcome outcome = run(halved(chosen(size, 12, 43)), size, 12, true, 2);
  EXPECT_TRUE(outcome.exact);
  EXPECT_GT(std::min(outcome.zeros, outcome.ones), 100);  // noise of either sign
}

// c1 by transforms whose sums are as long as the primes allow.
TEST(Packed, ExactWhereTransformsSumUpTheLargestWeights) {
  const Case size{8, 512, 128, 7, kSwitchingSets[9]};
  const PackedChoice choice = chosen(size, 15, 24);
  const PackedShape shape = matrix_product(size.rows, size.inner, size.outputs, 1 << 14);
  ASSERT_LT(c1_work(choice, shape, 1), size.inner * kPackedSet.n);  // as a matrix product
  EXPECT_TRUE(run(choice, size, 15, true, 4).exact);
}

// A test of the test: fewer bits than the noise needs give wrong results.
TEST(Packed, TooFewBitsForTheNoiseAreSeen) {
  const Case size{128, 64, 32, 5};
  PackedChoice answers = chosen(size, 12, 40), uploads = answers;
  answers.columns.answer_bits -= answers.columns.dropped - 5;
  answers.columns.dropped = 5;
  EXPECT_FALSE(run(answers, size, 12, false, 3).exact);
  uploads.columns.upload_bits -= 5;
  EXPECT_FALSE(run(uploads, size, 12, false, 3).exact);
}

TEST(Packed, ChoicesTakeTheirBoundFromPublicNumbers) {
  const auto bounds = [](i64 inner, int weight_bits, int ring_bits) {
    return ProductBounds{inner, largest_weight(weight_bits, true), ring_bits};
  };
  const SwitchingSet &narrow = kSwitchingSets[1], &wide = kSwitchingSets[2];
  EXPECT_LE(choose_packed(bounds(768, 12, 43), 5, narrow)->columns.log2_failure, kRequiredFailure);
  EXPECT_FALSE(choose_packed(bounds(768, 12, 44), 5, narrow));
  EXPECT_FALSE(choose_packed(bounds(768, 12, 43), 7, wide));
  EXPECT_FALSE(choose_packed(bounds(4096, 16, 44), 5, narrow));
  EXPECT_FALSE(choose_packed(bounds(768, 12, 60), 0, narrow));
  EXPECT_FALSE(choose_packed(bounds(40, 8, 32), 5, kSwitchingSets[8]));
  EXPECT_TRUE(choose_packed(bounds(40, 8, 28), 5, kSwitchingSets[8]));
  const ProductBounds given = bounds(768, 8, 30);
  const PackedChoice choice = choose_packed(given, 5, narrow).value();
  EXPECT_LT(log2_failure(choice, given, narrow), log2_failure(choice, bounds(1000, 8, 30), narrow));
  // Fewer bits of uploads do not serve.
  PackedChoice fewer = choice;
  --fewer.columns.upload_bits;
  EXPECT_GT(log2_failure(fewer, given, narrow), kRequiredFailure);
  EXPECT_THROW(choose_packed(bounds(768, 12, 44), 6, narrow), InvalidArgument);
}

TEST(Packed, MalformedMessagesAreRefused) {
  const Case size{2, 3, 2, 2};
  const PackedChoice choice = chosen(size, 8, 32);
  crypto::Prg prg({1, 1});
  const Digest digest{};
  KeyOwner key(kPackedSet, digest, prg);
  const SwitchingSet& set = size.set;
  const PackedShape shape = matrix_product(2, 3, 2, 128);
  std::vector<u8> keys(switching_bytes(set)), upload(packed_upload_bytes(choice, shape));
  write_switching_keys(key, digest, set, keys);
  EXPECT_THROW(SwitchingKeys(digest, kSwitchingSets[2], keys), ProtocolError);
  const SwitchingKeys switching(digest, set, keys);
  EXPECT_THROW(PackedEvaluator(switching, choice, shape, {}, Bytes(upload).first(1)),
               ProtocolError);
  upload.push_back(0);
  EXPECT_THROW(PackedEvaluator(switching, choice, shape, {}, upload), ProtocolError);
  EXPECT_THROW(PackedEvaluator(switching, choice, matrix_product(2000, 3, 2, 128), {}, upload),
               InvalidArgument);
  std::vector<u64> share(4);
  EXPECT_THROW(read_packed(key, choice, shape, upload, share), ProtocolError);
}

}  // namespace
}  // namespace privml::lattice
