// SPDX-License-Identifier: Apache-2.0
#include "lattice/wide_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/error.h"

namespace privml::lattice {
namespace {

// Whatever the shares are. With noise of half a bit, or a little more, shares that lose nothing, or
// the most, when they are rounded give wrong results.
TEST(WideProduct, SharesAreRoundedRightWhileNoiseIsBelowHalfABit) {
  std::mt19937_64 random(1);
  for (const int ring_bits : {1, 2, 32, 36, 62, 63, 64}) {
    const Torus half = power_of_half(ring_bits + 2), least = power_of_half(kTorusBits);
    const auto wrong_with = [&](Torus noise) {
      i64 wrong = 0;
      for (int i = 0; i < 500; ++i) {
        const u64 m = random() & low_mask(ring_bits);
        const Torus worst = i % 2 == 0 ? half : half - least;
        const Torus one = i < 100 ? worst : Torus{random(), random(), random()};
        const Torus other = torus_of(m, ring_bits) + noise - one;
        std::array<u64, 2> high{};
        std::array<u8, 2> last{};
        round_shares(ring_bits, true, {&one, 1}, {&high[0], 1}, {&last[0], 1});
        round_shares(ring_bits, false, {&other, 1}, {&high[1], 1}, {&last[1], 1});
        const u64 sum = high[0] + high[1] + (last[0] & last[1]);
        wrong += (sum & low_mask(ring_bits)) != m;
      }
      return wrong;
    };
    for (const Torus noise : {Torus{}, half - least, least - half, least, -least, -half})
      EXPECT_EQ(wrong_with(noise), 0) << ring_bits;
    EXPECT_GT(wrong_with(half), 0) << ring_bits;
    EXPECT_GT(wrong_with(-half - least - least), 0) << ring_bits;
  }
  std::array<u64, 2> high{};
  std::array<u8, 1> last{};
  EXPECT_THROW(round_shares(32, true, std::array<Torus, 1>{}, high, last), InvalidArgument);
  EXPECT_THROW(round_shares(65, true, {}, {}, {}), InvalidArgument);
}

enum class Values { random, smallest, alternating };

struct Outcome {
  bool exact = true;
  double noise = 0, squares = 0;  // the largest and the sum, in units of 2^-ring_bits
  std::vector<u8> upload, answers;
};

std::vector<u64> words(Values kind, i64 count, int bits, u64 seed) {
  std::mt19937_64 random(seed);
  std::vector<u64> out(count);
  for (u64& x : out) {
    x = random() & low_mask(bits);
    if (kind == Values::smallest) x = u64{1} << (bits - 1);
    if (kind == Values::alternating) x = (u64{1} << (bits - 1)) - (x & 1);
  }
  return out;
}

// A product with everything that belongs to it; `number` is its own under the keys.
struct Session {
  crypto::Prg client{{1, 1}}, owner{{2, 2}};
  Digest digest{};
  WideKeyOwner key;
  WideKeys keys;

  static WideKeys sent(WideKeyOwner& key, const WideSet& set, const Digest& digest) {
    std::vector<u8> wire(wide_key_bytes(set));
    key.write_key(wire);
    return WideKeys(set, digest, wire);
  }
  Session(const WideSet& set, SwitchingLevels kept)
      : key(set, digest, client), keys(sent(key, set, digest)) {
    std::vector<u8> wire(wide_switching_bytes(set));
    for (int level = 0; level < kMostWideLevels; ++level)
      if (kept.kept >> level & 1) {
        key.write_switching(level, wire);
        keys.add_level(level, wire);
      }
  }

  Outcome run(const WideChoice& choice, const WideShape& shape, i64 first,
              const std::vector<u64>& x, const std::vector<u64>& y) {
    Outcome out;
    const int bits = choice.ring_bits;
    out.upload.resize(wide_upload_bytes(choice, shape));
    key.write_upload(choice, shape, first, x, out.upload);
    WideEvaluator evaluator(keys, choice, shape, first, owner);
    i64 read = 0;
    const WideFactor factor{row_major(y, shape.inner, shape.columns), {bits, true}};
    std::vector<Torus> sums(shape.batch * shape.rows * shape.columns);
    const i64 each = wide_answer_bytes(choice);
    out.answers.resize(shape.answers() * each);
    for (i64 i = 0; i < shape.answers(); ++i) {
      while (evaluator.parts_read() < evaluator.parts_for(i)) {
        const i64 bytes = wide_part_bytes(choice, shape, evaluator.parts_read() % shape.parts());
        evaluator.read_part(std::span(out.upload).subspan(read, bytes));
        read += bytes;
      }
      evaluator.answer(i, factor, std::span(out.answers).subspan(i * each, each), sums);
    }
    key.add_answers(choice, shape, 0, out.answers, sums);
    for (i64 b = 0; b < shape.batch; ++b)
      for (i64 i = 0; i < shape.rows; ++i)
        for (i64 j = 0; j < shape.columns; ++j) {
          u64 expected = 0;
          for (i64 k = 0; k < shape.inner; ++k)
            expected += x[(b * shape.rows + i) * shape.inner + k] *
                        y[(b * shape.inner + k) * shape.columns + j];
          const Torus found = sums[(b * shape.rows + i) * shape.columns + j];
          const Torus noise = found - torus_of(expected & low_mask(bits), bits);
          const double size = static_cast<double>(static_cast<i64>(noise.high)) +
                              std::exp2(-64) * static_cast<double>(noise.middle);
          const double in_units = std::exp2(bits - 64) * size;
          out.noise = std::max(out.noise, std::abs(in_units));
          out.squares += in_units * in_units;
        }
    out.exact = out.noise < 0.25;
    return out;
  }
};

WideBounds bounds(const WideShape& shape, int ring_bits, SwitchingLevels keys, int y_bits) {
  const i64 terms = shape.inner * std::min(shape.columns, shape.columns_at_once());
  const int packed = shape.levels - shape.upload_levels;
  const double squares =
      static_cast<double>(terms) * std::exp2(2 * (y_bits - 1)) * std::exp2(2 * shape.upload_levels);
  return {ring_bits, squares, 1, packed, keys, squares * keys.switches(packed, shape.levels)};
}

WideBounds bounds(const WideShape& shape, int ring_bits, SwitchingLevels keys) {
  return bounds(shape, ring_bits, keys, ring_bits);
}

WideShape placed(WideShape shape, const WideSet& set) {
  shape.n = set.ring.n;
  return shape;
}

TEST(WideProduct, ExactForEveryGapAndManyShapes) {
  const WideSet& set = kWideSets[1];
  for (int levels = 0; levels <= 8; ++levels) {
    const SwitchingLevels kept = SwitchingLevels{}.with(levels);
    Session session(set, kept);
    const i64 gap = i64{1} << levels;
    i64 first = 0;
    for (const WideShape& shape :
         {WideShape{0, 1, 1, 1, 1, levels}, WideShape{0, 2, 4096 >> levels, 5, 3, levels},
          WideShape{0, 3, 3, 2 * gap + 1, gap + 1, levels},
          WideShape{0, 1, (4096 >> levels) + 2, gap - gap / 2, 2, levels},
          WideShape{0, 1, 1, 1, 2, levels, 1}, WideShape{0, 2, 2, gap + 1, 11, levels, 2},
          WideShape{0, 3, 3, 2 * gap - gap / 2, gap + 1, levels, 1},
          WideShape{0, 1, (4096 >> levels) / 16, gap, 15, levels, 4},
          WideShape{0, 2, (4096 >> levels) / 8 + 1, gap, 9, levels, 3}}) {
      const WideShape own = placed(shape, set);
      const auto choice = choose_wide(set, bounds(own, 24, kept));
      ASSERT_TRUE(choice);
      const auto x = words(Values::random, own.batch * own.rows * own.inner, 24, 1);
      const auto y = words(Values::random, own.batch * own.inner * own.columns, 24, 2);
      EXPECT_TRUE(session.run(*choice, own, first, x, y).exact) << levels << " " << own.rows;
      first += own.polynomials();
    }
  }
}

// Images of uploads in place of images of products: the last levels of packing, up to all of them,
// with outputs that are missing, rows, blocks and columns of any number.
TEST(WideProduct, ExactWithImagesOfUploads) {
  const WideSet& set = kWideSets[2];
  for (const int levels : {1, 2, 5, 7}) {
    const SwitchingLevels kept = SwitchingLevels{}.with(levels);
    Session session(set, kept);
    const i64 gap = i64{1} << levels, n = set.ring.n;
    i64 first = 0;
    for (int upload_levels = 1; upload_levels <= std::min(levels, 5); ++upload_levels)
      for (const WideShape& shape :
           {WideShape{n, 1, 1, 1, 1, levels, 0, upload_levels},
            WideShape{n, 1, 3, 2 * gap + 1, 2 * gap + 1, levels, 0, upload_levels},
            WideShape{n, 1, 2, gap, 5 * gap - 1, levels, 2, upload_levels},
            WideShape{n, 1, (n >> levels) / 8, gap - gap / 2, 19, levels, 3, upload_levels}}) {
        const WideChoice choice = choose_wide(set, bounds(shape, 24, kept, 12)).value();
        const auto x = words(Values::random, shape.rows * shape.inner, 24, 1);
        auto y = words(Values::random, shape.inner * shape.columns, 12, 2);
        for (u64& number : y) number = static_cast<u64>(to_signed(number, 12));
        EXPECT_TRUE(session.run(choice, shape, first, x, y).exact)
            << levels << " " << upload_levels << " " << shape.rows;
        first += shape.polynomials();
      }
  }
}

// A key's power of X, taken several times, is not that of the level that it serves.
TEST(WideProduct, ExactWithImagesByKeysOfOtherLevels) {
  const WideSet& set = kWideSets[2];
  for (const SwitchingLevels kept : {SwitchingLevels{0b10000000}, SwitchingLevels{0b11000000}}) {
    Session session(set, kept);
    const WideShape shape{set.ring.n, 1, 1, 140, 297, 8, 4, 4};
    const WideChoice choice = choose_wide(set, bounds(shape, 24, kept, 12)).value();
    const auto x = words(Values::random, shape.inner, 24, 1);
    auto y = words(Values::random, shape.inner * shape.columns, 12, 2);
    for (u64& number : y) number = static_cast<u64>(to_signed(number, 12));
    EXPECT_TRUE(session.run(choice, shape, 0, x, y).exact) << kept.kept;
  }
}

// A factor that stands transposed, in words whose upper bits are of no meaning.
TEST(WideProduct, FactorsAreReadAsTheyStand) {
  const WideSet& set = kWideSets[0];
  const SwitchingLevels kept = SwitchingLevels{}.with(3);
  const WideShape shape = placed({0, 1, 2, 21, 13, 3, 1}, set);
  const WideChoice choice = choose_wide(set, bounds(shape, 20, kept)).value();
  const auto x = words(Values::random, shape.rows * shape.inner, 20, 1);
  const auto y = words(Values::random, shape.inner * shape.columns, 64, 2);
  std::vector<u64> turned(y.size());
  for (i64 k = 0; k < shape.inner; ++k)
    for (i64 j = 0; j < shape.columns; ++j) turned[j * shape.inner + k] = y[k * shape.columns + j];
  const MatrixBatch plain = row_major(y, shape.inner, shape.columns);
  const MatrixBatch back = row_major(turned, shape.columns, shape.inner).turned();
  std::vector<std::vector<Torus>> sums;
  for (const WideFactor& factor : {WideFactor{plain, {12, true}}, WideFactor{back, {12, true}},
                                   WideFactor{back, {12, false}}}) {
    Session session(set, kept);
    std::vector<u8> upload(wide_upload_bytes(choice, shape));
    session.key.write_upload(choice, shape, 0, x, upload);
    WideEvaluator evaluator(session.keys, choice, shape, 0, session.owner);
    evaluator.read_part(upload);
    std::vector<u8> answer(shape.answers() * wide_answer_bytes(choice));
    sums.emplace_back(shape.rows * shape.columns);
    evaluator.answer(0, factor, answer, sums.back());
    session.key.add_answers(choice, shape, 0, answer, sums.back());
    for (i64 i = 0; i < shape.rows; ++i)
      for (i64 j = 0; j < shape.columns; ++j) {
        u64 expected = 0;
        for (i64 k = 0; k < shape.inner; ++k) {
          const u64 number = y[k * shape.columns + j] & low_mask(12);
          const u64 read =
              factor.format.is_signed ? static_cast<u64>(to_signed(number, 12)) : number;
          expected += x[i * shape.inner + k] * read;
        }
        const Torus noise = sums.back()[i * shape.columns + j] -
                            torus_of(expected & low_mask(20), 20) + power_of_half(22);
        EXPECT_LT(noise.high, u64{1} << 43) << i << " " << j;
      }
  }
}

// So many entries of y that fewer outputs than otherwise are made together.
TEST(WideProduct, ExactForLongRowsAndSeveralColumns) {
  const WideSet& set = kWideSets[1];
  const SwitchingLevels kept = SwitchingLevels{}.with(5);
  Session session(set, kept);
  const WideShape shape = placed({0, 1, 1, 3000, 1000, 5, 6}, set);
  const auto choice = choose_wide(set, bounds(shape, 16, kept));
  ASSERT_TRUE(choice);
  const auto x = words(Values::random, shape.inner, 16, 1);
  const auto y = words(Values::random, shape.inner * shape.columns, 16, 2);
  EXPECT_TRUE(session.run(*choice, shape, 0, x, y).exact);
}

// Slots that are sent are those that some entry of the output meets, and no others.
TEST(WideProduct, WhatOutputsDependOnIsSent) {
  for (const int column_levels : {0, 1, 3})
    for (const i64 rows : {1, 2, 31, 32, 256}) {
      const WideShape shape{4096, 1, rows, 16, 64, 4, column_levels};
      const i64 slots = shape.n / shape.gap(), at_once = shape.columns_at_once();
      std::vector<bool> met(slots), sent(slots);
      for (i64 row = 0; row < shape.rows_of(0); ++row)
        for (i64 column = 0; column < at_once; ++column)
          for (i64 other = 0; other < at_once; ++other)
            met[(row * at_once + column - other + slots) % slots] = true;
      for (i64 i = 0; i < shape.slots_of(0); ++i) sent[shape.slot(i)] = true;
      EXPECT_EQ(sent, met) << rows << " " << column_levels;
      EXPECT_EQ(shape.slots_of(0), std::ranges::count(met, true));
    }
}

TEST(WideProduct, AnswersOfOneCallAreThoseOfSeveralThreads) {
  const WideSet& set = kWideSets[1];
  const SwitchingLevels kept = SwitchingLevels{}.with(4);
  Session session(set, kept);
  const WideShape shape = placed({0, 3, 150, 40, 61, 4, 1}, set);
  const auto choice = choose_wide(set, bounds(shape, 24, kept));
  ASSERT_TRUE(choice && shape.parts() == 2 && shape.answers() == 12);
  const auto x = words(Values::random, shape.batch * shape.rows * shape.inner, 24, 1);
  const auto y = words(Values::random, shape.batch * shape.inner * shape.columns, 24, 2);
  std::vector<u8> upload(wide_upload_bytes(*choice, shape));
  session.key.write_upload(*choice, shape, 0, x, upload);
  const i64 each = wide_answer_bytes(*choice);
  const WideFactor factor{row_major(y, shape.inner, shape.columns), {24, true}};
  const auto answered = [&](i64 together, int threads) {
    crypto::Prg prg({3, 3});
    WideEvaluator evaluator(session.keys, *choice, shape, 0, prg, threads);
    std::vector<u8> out(shape.answers() * each);
    std::vector<Torus> sums(shape.batch * shape.rows * shape.columns);
    i64 read = 0;
    for (i64 i = 0; i < shape.answers(); i += together) {
      const i64 count = std::min(together, shape.answers() - i);
      while (evaluator.parts_read() < evaluator.parts_for(i + count - 1)) {
        const i64 bytes = wide_part_bytes(*choice, shape, evaluator.parts_read() % shape.parts());
        evaluator.read_part(std::span(upload).subspan(read, bytes));
        read += bytes;
      }
      evaluator.answer(i, factor, std::span(out).subspan(i * each, count * each), sums);
    }
    return std::pair{out, sums};
  };
  const auto [bytes, sums] = answered(1, 1);
  for (const auto& [together, threads] : {std::pair<i64, int>{5, 1}, {5, 3}, {12, 4}}) {
    const auto [others, other_sums] = answered(together, threads);
    EXPECT_EQ(others, bytes) << together;
    for (size_t i = 0; i < sums.size(); ++i) {
      const Torus difference = other_sums[i] - sums[i];
      ASSERT_TRUE(difference.high == 0 && difference.middle == 0 && difference.low == 0) << i;
    }
  }
}

// The bound is one of a tail, so that the largest of some thousand noises stays well below.
TEST(WideProduct, NoiseOfExtremeValuesStaysBelowItsBound) {
  for (const auto& [number, ring_bits] : {std::pair{0, 32}, {1, 36}, {2, 44}, {2, 48}, {3, 64}}) {
    const WideSet& set = kWideSets[number];
    const SwitchingLevels kept = SwitchingLevels{}.with(5);
    Session session(set, kept);
    i64 first = 0;
    for (const int column_levels : {0, 3}) {
      const WideShape shape = placed({0, 1, 8, 200, 64, 5, column_levels}, set);
      const auto choice = choose_wide(set, bounds(shape, ring_bits, kept));
      ASSERT_TRUE(choice) << ring_bits;
      EXPECT_LE(choice->log2_failure, kRequiredFailure);
      for (const Values kind : {Values::random, Values::smallest, Values::alternating}) {
        const auto x = words(kind, 8 * 200, ring_bits, 3), y = words(kind, 200 * 64, ring_bits, 4);
        const Outcome outcome = session.run(*choice, shape, first, x, y);
        EXPECT_TRUE(outcome.exact) << ring_bits;
        EXPECT_LT(outcome.noise, 0.15) << ring_bits;
        EXPECT_GT(outcome.noise, 0.02) << ring_bits;
        first += shape.polynomials();
      }
    }
  }
}

// Each part of the noise where it is the largest, beside the deviation of the Gaussian whose tail
// the bound is: key switches, and the rounding of answers and of uploads.
TEST(WideProduct, EveryPartOfTheNoiseIsAsLargeAsItsBound) {
  constexpr int kRingBits = 8, kInner = 4;
  for (const WideSet& set : kWideSets)
    for (const auto& [levels, column_levels] : {std::pair{1, 0}, {5, 0}, {1, 4}, {5, 2}}) {
      const i64 rows = set.ring.n >> (levels + column_levels);
      const i64 columns = i64{1} << (levels + column_levels);
      const WideShape shape = placed({0, 1, rows, kInner, columns, levels, column_levels}, set);
      const SwitchingLevels kept = SwitchingLevels{}.with(levels);
      Session session(set, kept);
      i64 first = 0;
      const auto x = words(Values::random, rows * kInner, kRingBits, 3);
      const auto y = words(Values::smallest, kInner * columns, kRingBits, 4);
      for (const auto& [upload_bits, answer_bits] : {std::pair{set.ring.log_q, set.ring.log_q},
                                                     {set.ring.log_q, 40},
                                                     {40, set.ring.log_q}}) {
        const WideChoice choice{set, kRingBits, upload_bits, answer_bits, 0};
        const Outcome outcome = session.run(choice, shape, first, x, y);
        first += shape.polynomials();
        const double room = 0.25 - std::exp2(-20);
        const double log2_tail = log2_failure(choice, bounds(shape, kRingBits, kept));
        const double deviation = room / std::sqrt(2 * std::log(2.) * (1 - log2_tail));
        const double found = std::sqrt(outcome.squares / static_cast<double>(rows * columns));
        SCOPED_TRACE(std::to_string(set.ring.log_q) + " " + std::to_string(upload_bits) + " " +
                     std::to_string(column_levels));
        EXPECT_LT(found, 1.1 * deviation);  // all columns have the noise of one upload
        EXPECT_GT(found, deviation / 2);
      }
    }
}

// The same for images of uploads: their key switches, and the rounding of uploads that they share.
TEST(WideProduct, NoiseOfImagesOfUploadsIsAsLargeAsItsBound) {
  constexpr int kRingBits = 8, kInner = 32;
  for (const WideSet& set : kWideSets)
    for (const auto& [levels, upload_levels] : {std::pair{1, 1}, {5, 2}, {5, 5}}) {
      const i64 columns = i64{4} << levels;
      const WideShape shape{set.ring.n, 1, 4, kInner, columns, levels, 2, upload_levels};
      const SwitchingLevels kept = SwitchingLevels{}.with(levels);
      double squares = 0, expected = 0;
      for (const int upload_bits : {set.ring.log_q, 40}) {
        const WideChoice choice{set, kRingBits, upload_bits, set.ring.log_q, 0};
        const double room = 0.25 - std::exp2(-20);
        const double log2_tail = log2_failure(choice, bounds(shape, kRingBits, kept));
        expected = room / std::sqrt(2 * std::log(2.) * (1 - log2_tail));
        squares = 0;
        // Of several keys: outputs have the errors of one upload and of its images in common.
        for (u64 seed = 1; seed <= 4; ++seed) {
          Session session(set, kept);
          const auto x = words(Values::random, 4 * kInner, kRingBits, seed);
          const auto y = words(Values::smallest, kInner * columns, kRingBits, 4);
          squares += session.run(choice, shape, static_cast<i64>(seed) << 20, x, y).squares;
        }
        const double found = std::sqrt(squares / static_cast<double>(4 * 4 * columns));
        SCOPED_TRACE(std::to_string(set.ring.log_q) + " " + std::to_string(upload_bits) + " " +
                     std::to_string(upload_levels));
        EXPECT_LT(found, 1.5 * expected);  // of some sixteen noises that differ
        EXPECT_GT(found, expected / 8);    // digits are taken at their largest
      }
    }
}

// A test of the test: fewer bits than noise needs give wrong results.
TEST(WideProduct, TooFewBitsForTheNoiseAreSeen) {
  const WideSet& set = kWideSets[0];
  const WideShape shape = placed({0, 1, 8, 64, 32, 5}, set);
  const SwitchingLevels kept = SwitchingLevels{}.with(5);
  const auto x = words(Values::smallest, 8 * 64, 32, 5),
             y = words(Values::alternating, 64 * 32, 32, 6);
  const WideChoice choice = choose_wide(set, bounds(shape, 32, kept)).value();
  WideChoice upload = choice, answer = choice;
  upload.upload_bits -= 5;
  answer.answer_bits -= 5;
  for (const WideChoice& bad : {upload, answer}) {
    EXPECT_GT(log2_failure(bad, bounds(shape, 32, kept)), kRequiredFailure);
    EXPECT_FALSE(Session(set, kept).run(bad, shape, 0, x, y).exact) << bad.upload_bits;
  }
  EXPECT_FALSE(choose_wide(set, bounds(shape, 40, kept)));
}

// Neither the lengths nor the distribution of what is sent depends on values: the answers' halves
// c1 of two equal products have nothing in common, and those of zeros look as random.
TEST(WideProduct, AnswersOfEqualProductsAreUnrelated) {
  const WideSet& set = kWideSets[0];
  const WideShape shape = placed({0, 1, 128, 32, 32, 5}, set);
  const SwitchingLevels kept = SwitchingLevels{}.with(5);
  const WideChoice choice = choose_wide(set, bounds(shape, 32, kept)).value();
  Session session(set, kept);
  const std::vector<u64> zeros(128 * 32), small(32 * 32, 1);
  std::vector<Outcome> runs;
  for (const auto& y : {std::vector<u64>(32 * 32), small, small})
    runs.push_back(session.run(choice, shape, 7, zeros, y));
  for (size_t i = 0; i < runs.size(); ++i) {
    EXPECT_TRUE(runs[i].exact);
    i64 ones = 0;
    for (const u8 byte : runs[i].answers) ones += std::popcount(byte);
    const double expected = 4. * static_cast<double>(runs[i].answers.size());
    EXPECT_NEAR(static_cast<double>(ones), expected, 6 * std::sqrt(expected / 2));
    for (size_t j = 0; j < i; ++j) {
      i64 equal = 0;
      for (size_t k = 0; k < runs[i].answers.size(); ++k)
        equal += runs[i].answers[k] == runs[j].answers[k];
      EXPECT_LT(equal, std::ssize(runs[i].answers) / 100);
    }
  }
}

TEST(WideProduct, MalformedMessagesAreRefused) {
  const WideSet& set = kWideSets[0];
  const WideShape shape = placed({0, 1, 2, 3, 2, 2}, set);
  const SwitchingLevels kept = SwitchingLevels{}.with(2);
  const WideChoice choice = choose_wide(set, bounds(shape, 32, kept)).value();
  Session session(set, kept);
  std::vector<u8> key(wide_key_bytes(set)), level(wide_switching_bytes(set));
  std::vector<u8> upload(wide_upload_bytes(choice, shape));
  session.key.write_upload(choice, shape, 0, std::vector<u64>(6), upload);
  const auto evaluate = [&](Bytes bytes, const WideShape& of) {
    WideEvaluator evaluator(session.keys, choice, of, 0, session.owner);
    evaluator.read_part(bytes);
  };
  EXPECT_THROW(WideKeys(set, {}, Bytes(key).first(5)), ProtocolError);
  EXPECT_THROW(session.keys.add_level(4, Bytes(level).first(5)), ProtocolError);
  EXPECT_THROW(session.keys.add_level(1, level), InvalidArgument);
  std::ranges::fill(key, u8{0xff});
  EXPECT_THROW(WideKeys(set, {}, key), ProtocolError);
  EXPECT_THROW(evaluate(Bytes(upload).first(1), shape), ProtocolError);
  EXPECT_THROW(evaluate(upload, WideShape{8192, 1, 2, 3, 2, 2}), InvalidArgument);
  std::vector<Torus> sums(4);
  EXPECT_THROW(session.key.add_answers(choice, shape, 0, upload, sums), ProtocolError);
}

TEST(WideProduct, KeysOfFewLevelsServeTheOthers) {
  EXPECT_EQ(SwitchingLevels{}.with(0).kept, 0U);
  EXPECT_EQ(SwitchingLevels{}.with(1).kept, 0b1U);
  EXPECT_EQ(SwitchingLevels{}.with(5).kept, 0b10100U);
  // What is there serves.
  EXPECT_EQ(SwitchingLevels{0b10100}.with(4).kept, 0b10100U);
  EXPECT_EQ(SwitchingLevels{0b10100}.with(7).kept & 0b10100U, 0b10100U);
  EXPECT_EQ(SwitchingLevels{0b10100}.images(5, 32), 16 + 8 * 2 + 4 + 2 * 2 + 4);
  EXPECT_EQ(SwitchingLevels{0b10100}.images(5, 3), 2 + 2 + 1 + 2 + 4);
}

}  // namespace
}  // namespace privml::lattice
