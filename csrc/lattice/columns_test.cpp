// SPDX-License-Identifier: Apache-2.0
#include "lattice/columns.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.h"
#include "lattice/words.h"

namespace privml::lattice {
namespace {

struct Shape {
  i64 outputs, inner, columns;
};

struct Product {
  bool exact = true;
  i64 zeros = 0, ones = 0;
  std::vector<u8> halves;
  std::vector<u64> shares;  // the evaluator's
};

enum class Extremes { none, weights, message };

Digest session(u8 number) {
  Digest digest{};
  digest[0] = number;
  return digest;
}

// A product of random matrices, or of those with the largest entries, whose shares are put together
// and compared; `zeros` and `ones` count the last bits, in which the noise is.
Product run(const ColumnChoice& choice, const Shape& shape, int weight_bits, Extremes extremes,
            u64 seed, u8 number = 1) {
  const auto [outputs, inner, columns] = shape;
  const int ring_bits = choice.ring_bits();
  std::mt19937_64 random(seed);
  std::vector<u64> weights(outputs * inner), message(inner * columns);
  const u64 most = largest_weight(weight_bits, true);
  for (u64& w : weights) {
    w = static_cast<u64>(to_signed(random(), weight_bits));
    if (extremes == Extremes::weights) w = random() % 2 ? u64{0} - most : most - 1;
  }
  for (u64& m : message) {
    m = random() & low_mask(ring_bits);
    if (extremes == Extremes::message)
      m = random() % 2 ? low_mask(ring_bits) : u64{1} << (ring_bits - 1);
  }
  crypto::Prg client({seed, 1}), owner({seed, 2});
  KeyOwner key(choice.set, session(number), client);
  std::vector<u8> p0(key_bytes(choice.set));
  key.write_key(p0);
  Product result;
  const crypto::Block blinding = owner.next_block();
  Evaluator evaluator(choice, {outputs, inner}, columns, blinding, p0);
  std::vector<u8> upload(upload_bytes(choice, columns));
  for (i64 k = 0; k < inner; ++k) {
    key.encrypt(k, 1, choice, std::span(message).subspan(k * columns, columns), upload);
    evaluator.read_ciphertext(k, upload);
  }
  const i64 c1 = halves_bytes(choice, 1);
  result.halves.resize(outputs * c1);
  result.shares.resize(outputs * columns);
  HalvesMaker(choice, session(number), inner, blinding)
      .write({weights, 0, outputs, most}, result.halves);
  evaluator.answer({weights, 0, outputs, most}, result.shares);
  for (i64 j = 0; j < outputs; ++j) {
    std::vector<u64> share(columns);
    key.shares_of(1, choice, Bytes(result.halves).subspan(j * c1, c1), share);
    for (i64 x = 0; x < columns; ++x) {
      u64 expected = 0;
      for (i64 k = 0; k < inner; ++k) expected += weights[j * inner + k] * message[k * columns + x];
      const u64 sum = (share[x] + result.shares[j * columns + x]) & low_mask(choice.share_bits());
      result.exact = result.exact && (sum >> 1) == (expected & low_mask(ring_bits));
      (sum & 1 ? result.ones : result.zeros) += 1;
    }
  }
  return result;
}

ColumnChoice chosen(i64 inner, int weight_bits, int ring_bits, Noise noise = Noise::tail) {
  return choose_columns({inner, largest_weight(weight_bits, true), ring_bits}, noise).value();
}

TEST(Columns, ExactAtEveryModulusAndWidth) {
  for (const int ring_bits : {1, 8, 32, 37, 44, 49, 55})
    for (const int weight_bits : {2, 8, 12, 16}) {
      const auto choice =
          choose_columns({40, largest_weight(weight_bits, true), ring_bits}, Noise::tail);
      if (!choice) continue;
      const Product result = run(*choice, {3, 40, 70}, weight_bits, Extremes::none, 1);
      EXPECT_TRUE(result.exact) << ring_bits << " " << weight_bits;
    }
}

TEST(Columns, ExactWithTheLargestEntries) {
  for (const Extremes extremes : {Extremes::weights, Extremes::message})
    for (const auto& [inner, weight_bits, ring_bits] :
         {std::array{100, 12, 44}, {100, 16, 49}, {30, 3, 41}}) {
      const Product result =
          run(chosen(inner, weight_bits, ring_bits), {2, inner, 4096}, weight_bits, extremes, 2);
      EXPECT_TRUE(result.exact) << inner << " " << weight_bits << " " << ring_bits;
    }
}

// Whatever the shares are. With noise of half a bit, or a little more, shares that lose nothing, or
// the most, when they are rounded give wrong results. Less is dropped than low bits, or more.
TEST(Columns, SharesAreRoundedRightWhileNoiseIsBelowHalfABit) {
  std::mt19937_64 random(1);
  for (const auto& [log_q, ring_bits] : {std::array{64, 24}, {72, 32}, {80, 55}, {80, 62}}) {
    const ColumnChoice choice{{4096, log_q, {}}, 1, ring_bits + 1, log_q, 0};
    const int bits = choice.share_bits(), low_bits = log_q - 64;
    const u128 most = (u128{1} << log_q) - 1;
    const u128 half = u128{1} << (log_q - bits - 1);
    const auto wrong_with = [&](u128 noise) {
      i64 wrong = 0;
      for (int i = 0; i < 500; ++i) {
        const u64 m = random() & low_mask(ring_bits);
        const u128 worst = i % 2 == 0 ? half : half - 1;
        const u128 one = i < 100 ? worst : (u128{random()} << 64 | random()) & most;
        const u128 other = ((u128{m} << (log_q - ring_bits)) + noise - one) & most;
        Words words(1);
        words.high[0] = high_of(one, low_bits);
        words.low[0] = low_of(one, low_bits);
        u64 rounded = 0;
        round_shares(choice, words.view(), {&rounded, 1});
        const u64 sum = rounded + static_cast<u64>(other >> (log_q - bits));
        wrong += (sum >> 1 & low_mask(ring_bits)) != m;
      }
      return wrong;
    };
    for (const u128 noise : {u128{0}, half - 1, 1 - half, u128{0} - half})
      EXPECT_EQ(wrong_with(noise), 0) << log_q;
    EXPECT_GT(wrong_with(half), 0) << log_q;
    EXPECT_GT(wrong_with(u128{0} - half - 2), 0) << log_q;
  }
}

// With half of the room for it results are still right.
TEST(Columns, NoiseStaysBelowHalfOfItsBound) {
  for (const Noise noise : {Noise::tail, Noise::proved}) {
    ColumnChoice choice = chosen(256, 16, 44, noise);
    choice.dropped -= 1;
    choice.answer_bits -= 1;
    const Product result = run(choice, {8, 256, 4096}, 16, Extremes::weights, 3);
    EXPECT_TRUE(result.exact);
    EXPECT_GT(std::min(result.zeros, result.ones), 1000);  // it is there, of either sign
  }
}

TEST(Columns, RowsOfOneCallAreThoseOfSeveralThreads) {
  constexpr i64 kOutputs = 50, kInner = 20, kColumns = 33;
  const ColumnChoice choice = chosen(kInner, 12, 44);
  std::vector<u64> weights(kOutputs * kInner), message(kInner * kColumns);
  crypto::Prg(crypto::Block{1, 1}).fill_ring(message, 44);
  for (i64 i = 0; i < kOutputs * kInner; ++i)
    weights[i] = static_cast<u64>(to_signed(static_cast<u64>(i * i), 12));
  const u64 largest = largest_weight(12, true);
  struct Run {
    std::vector<u8> upload, c1;
    std::vector<u64> theirs, mine;
    bool operator==(const Run&) const = default;
  };
  // `together`: the outputs of a call.
  const auto run_with = [&](int threads, i64 together) {
    crypto::Prg client({2, 1});
    KeyOwner key(choice.set, session(1), client);
    std::vector<u8> p0(key_bytes(choice.set));
    key.write_key(p0);
    Evaluator evaluator(choice, {kOutputs, kInner}, kColumns, {5, 6}, p0);
    const HalvesMaker maker(choice, session(1), kInner, {5, 6});
    const i64 each = upload_bytes(choice, kColumns), half = halves_bytes(choice, 1);
    Run run{std::vector<u8>(kInner * each), std::vector<u8>(kOutputs * half),
            std::vector<u64>(kOutputs * kColumns), std::vector<u64>(kOutputs * kColumns)};
    key.encrypt(0, kInner, choice, message, run.upload, threads);
    for (i64 k = 0; k < kInner; ++k)
      evaluator.read_ciphertext(k, Bytes(run.upload).subspan(k * each, each));
    for (i64 first = 0; first < kOutputs; first += together) {
      const i64 rows = std::min(together, kOutputs - first);
      const WeightRows part{std::span(weights).subspan(first * kInner, rows * kInner), first, rows,
                            largest};
      maker.write(part, std::span(run.c1).subspan(first * half, rows * half), threads);
      evaluator.answer(part, std::span(run.theirs).subspan(first * kColumns, rows * kColumns),
                       threads);
    }
    key.shares_of(kOutputs, choice, run.c1, run.mine, threads);
    return run;
  };
  const Run one = run_with(1, kOutputs);
  for (i64 i = 0; i < kOutputs * kColumns; ++i) {
    u64 expected = 0;
    for (i64 k = 0; k < kInner; ++k)
      expected += weights[i / kColumns * kInner + k] * message[k * kColumns + i % kColumns];
    ASSERT_EQ((one.mine[i] + one.theirs[i]) >> 1 & low_mask(44), expected & low_mask(44)) << i;
  }
  for (const auto& [threads, together] : {std::pair<int, i64>{2, kOutputs}, {5, kOutputs}, {3, 26}})
    EXPECT_EQ(run_with(threads, together), one) << threads << " " << together;
}

// A test of the test: with too few bits results are wrong.
TEST(Columns, TooFewBitsForTheNoiseAreSeen) {
  ColumnChoice answers = chosen(64, 12, 44), uploads = answers;
  answers.answer_bits -= answers.dropped - 5;
  answers.dropped = 5;
  EXPECT_FALSE(run(answers, {2, 64, 4096}, 12, Extremes::none, 4).exact);
  uploads.upload_bits -= 5;
  EXPECT_FALSE(run(uploads, {2, 64, 4096}, 12, Extremes::none, 4).exact);
}

std::vector<u64> halves_of(const ColumnChoice& choice, std::span<const u64> weights, i64 inner,
                           u8 number, crypto::Block blinding) {
  const i64 rows = std::ssize(weights) / inner, n = choice.set.n, each = halves_bytes(choice, 1);
  std::vector<u8> bytes(rows * each);
  HalvesMaker(choice, session(number), inner, blinding).write({weights, 0, rows, 128}, bytes);
  std::vector<u64> out(rows * n);
  for (i64 i = 0; i < rows; ++i)
    read_numbers(Bytes(bytes).subspan(i * each, each), choice.answer_bits,
                 std::span(out).subspan(i * n, n));
  return out;
}

// Chi-square of the top four bits of the differences: 15 degrees of freedom, above 60 in one of
// 10^6.
double unlike(std::span<const u64> a, std::span<const u64> b, int bits) {
  std::array<double, 16> classes{};
  for (size_t i = 0; i < a.size(); ++i) ++classes[(a[i] - b[i]) >> (bits - 4) & 15];
  double chi = 0;
  const double each = static_cast<double>(a.size()) / 16;
  for (const double count : classes) chi += (count - each) * (count - each) / each;
  return chi;
}

TEST(Columns, HalvesOfAnswersAreUnrelated) {
  const ColumnChoice choice = chosen(4, 8, 32);
  const i64 n = choice.set.n;
  const int bits = choice.answer_bits;
  const std::vector<u64> weights{1, 2, 3, 4, 1, 2, 3, 4}, other{1, 2, 3, 5};
  const std::span<const u64> row = std::span(weights).first(4);
  const auto both = halves_of(choice, weights, 4, 1, {5, 6});
  const auto first = std::span(both).first(n), second = std::span(both).subspan(n);
  EXPECT_LT(unlike(first, second, bits), 60);  // two answers to one query
  EXPECT_LT(unlike(first, halves_of(choice, row, 4, 2, {5, 6}), bits), 60);  // other public halves
  EXPECT_LT(unlike(first, halves_of(choice, row, 4, 1, {5, 7}), bits), 60);  // other secrets
  EXPECT_LT(unlike(first, halves_of(choice, other, 4, 1, {5, 7}), bits), 60);
  // The same once more repeats the same numbers.
  EXPECT_TRUE(std::ranges::equal(first, halves_of(choice, row, 4, 1, {5, 6})));
}

TEST(Columns, PublicHalvesDifferByPartPlaceAndSession) {
  const Digest one = session(1), two = session(2);
  const std::vector<crypto::Block> seeds{public_seed(one, PublicPart::key, 0),
                                         public_seed(one, PublicPart::upload, 0),
                                         public_seed(one, PublicPart::upload, 1),
                                         public_seed(two, PublicPart::key, 0),
                                         public_seed(two, PublicPart::upload, 0),
                                         tag_of(one, 0, 4),
                                         tag_of(one, 1, 4),
                                         tag_of(one, 0, 5),
                                         tag_of(two, 0, 4)};
  for (size_t i = 0; i < seeds.size(); ++i)
    for (size_t j = 0; j < i; ++j) EXPECT_FALSE(seeds[i] == seeds[j]) << i << " " << j;
}

TEST(Transcript, EveryFieldCounts) {
  const ColumnChoice choice = chosen(4, 8, 32);
  const std::vector<u8> label{1, 2};
  const Transcript base{0, choice, {2, 3}, label};
  std::vector<Transcript> all(9, base);
  all[1].weights_owner = 1;
  all[2].choice.set.log_q = 80;
  all[3].choice.dropped = 11;
  all[4].choice.answer_bits = 43;
  all[5].shape.outputs = 3;
  all[6].shape.inner = 2;
  all[7].label = Bytes(label).first(1);
  all[8].choice.upload_bits = 5;
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t j = 0; j < i; ++j) EXPECT_NE(digest_of(all[i]), digest_of(all[j])) << i << " " << j;
  const Digest a = session(1), b = session(2);
  EXPECT_NE(digest_of(base, a, b), digest_of(base, b, a));
  EXPECT_NE(digest_of(base, a, b), digest_of(base, a, a));
}

TEST(Columns, MalformedMessagesAreRefused) {
  ColumnChoice choice = chosen(768, 12, 44);
  choice.set = kColumnSets[2];  // words of 76 bits end within a byte
  choice.upload_bits = 76;
  crypto::Prg prg({1, 1});
  KeyOwner key(choice.set, session(1), prg);
  std::vector<u8> p0(key_bytes(choice.set));
  key.write_key(p0);
  const WeightsShape shape{1, 1};
  EXPECT_THROW(Evaluator(choice, shape, 3, {}, Bytes(p0).first(p0.size() - 1)), ProtocolError);
  EXPECT_THROW(Evaluator(choice, shape, 4097, {}, p0), InvalidArgument);
  Evaluator evaluator(choice, shape, 3, {}, p0);
  std::vector<u8> upload(upload_bytes(choice, 3));
  EXPECT_NO_THROW(evaluator.read_ciphertext(0, upload));
  EXPECT_THROW(evaluator.read_ciphertext(1, upload), InvalidArgument);
  EXPECT_THROW(evaluator.read_ciphertext(0, Bytes(upload).first(upload.size() - 1)), ProtocolError);
  upload.back() = 0x10;  // above the last number
  EXPECT_THROW(evaluator.read_ciphertext(0, upload), ProtocolError);
  std::vector<u8> c1(halves_bytes(choice, 1));
  std::vector<u64> share(3), longer(4097);
  EXPECT_NO_THROW(key.shares_of(1, choice, c1, share));
  EXPECT_THROW(key.shares_of(1, choice, Bytes(c1).first(c1.size() - 1), share), ProtocolError);
  EXPECT_THROW(key.shares_of(1, choice, c1, longer), InvalidArgument);
}

}  // namespace
}  // namespace privml::lattice
