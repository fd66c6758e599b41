// SPDX-License-Identifier: Apache-2.0
#include "lattice/columns.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.h"
#include "lattice/wire.h"

namespace privml::lattice {
namespace {

struct Product {
  bool exact = true;
  i64 noise = 0;  // the largest in absolute value
  std::vector<u8> upload, answers;
  std::vector<u64> shares;  // the evaluator's
};

enum class Extremes { none, weights, message };

Digest session(u8 number) {
  Digest digest{};
  digest[0] = number;
  return digest;
}

// A product of random matrices, or of those with the largest entries, whose shares are put together
// and compared; the noise is what is left in the dropped bits.
Product run(const ColumnChoice& choice, const ProductShape& shape, int weight_bits,
            Extremes extremes, u64 seed, u8 number = 1) {
  const auto [outputs, inner, columns] = shape;
  const int ring_bits = choice.answer_bits - choice.dropped;
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
  Prg client({seed, 1}), owner({seed, 2});
  KeyOwner key(choice, session(number), client);
  std::vector<u8> p0(key_bytes(choice));
  key.write_key(p0);
  Product result;
  result.upload.resize(upload_bytes(choice, inner, columns));
  const i64 each = upload_bytes(choice, 1, columns);
  for (i64 k = 0; k < inner; ++k)
    key.encrypt(k, std::span(message).subspan(k * columns, columns),
                MutableBytes(result.upload).subspan(k * each, each));
  Evaluator evaluator(choice, session(number), inner, columns, p0, owner);
  for (i64 k = 0; k < inner; ++k)
    evaluator.read_ciphertext(k, Bytes(result.upload).subspan(k * each, each));
  const i64 answer = answer_bytes(choice, columns);
  result.answers.resize(outputs * answer);
  result.shares.resize(outputs * columns);
  evaluator.answer(weights, outputs, most, result.answers, result.shares);
  const i64 half = i64{1} << (choice.dropped - 1);
  for (i64 j = 0; j < outputs; ++j) {
    std::vector<u64> share(columns);
    key.decrypt(Bytes(result.answers).subspan(j * answer, answer), share);
    for (i64 x = 0; x < columns; ++x) {
      u64 expected = 0;
      for (i64 k = 0; k < inner; ++k) expected += weights[j * inner + k] * message[k * columns + x];
      const u64 sum = (share[x] + result.shares[j * columns + x]) & low_mask(choice.answer_bits);
      const u64 difference = sum - (expected << choice.dropped) - static_cast<u64>(half);
      const i64 noise = to_signed(difference, choice.answer_bits);
      result.noise = std::max(result.noise, std::abs(noise));
      result.exact = result.exact && (sum >> choice.dropped) == (expected & low_mask(ring_bits));
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

TEST(Columns, NoiseStaysBelowHalfOfItsBound) {
  for (const Noise noise : {Noise::tail, Noise::proved}) {
    const ColumnChoice choice = chosen(256, 16, 44, noise);
    const Product result = run(choice, {8, 256, 4096}, 16, Extremes::weights, 3);
    EXPECT_TRUE(result.exact);
    EXPECT_LT(result.noise, i64{1} << (choice.dropped - 2));
    EXPECT_GT(result.noise, 30);  // it is there
  }
}

// A test of the test: with too few bits dropped, results are wrong.
TEST(Columns, TooFewBitsForTheNoiseAreSeen) {
  ColumnChoice choice = chosen(64, 12, 44);
  choice.answer_bits -= choice.dropped - 4;
  choice.dropped = 4;
  EXPECT_FALSE(run(choice, {2, 64, 4096}, 12, Extremes::none, 4).exact);
}

TEST(Columns, AnswersToTheSameQueryAreUnrelated) {
  const ColumnChoice choice = chosen(4, 8, 32);
  Prg client({1, 1}), owner({1, 2});
  KeyOwner key(choice, session(1), client);
  std::vector<u8> p0(key_bytes(choice)), upload(upload_bytes(choice, 1, 100));
  key.write_key(p0);
  Evaluator evaluator(choice, session(1), 4, 100, p0, owner);
  for (i64 k = 0; k < 4; ++k) {
    key.encrypt(k, std::vector<u64>(100, 1), upload);
    evaluator.read_ciphertext(k, upload);
  }
  const std::vector<u64> weights{1, 2, 3, 4, 1, 2, 3, 4};
  const i64 each = answer_bytes(choice, 100), bits = choice.answer_bits, n = choice.set.n;
  std::vector<u8> answers(2 * each);
  std::vector<u64> share(200), first(n), second(n);
  evaluator.answer(weights, 2, 128, answers, share);
  const i64 c0 = packed_bytes(100, static_cast<int>(bits));
  read_numbers(Bytes(answers).subspan(c0, each - c0), static_cast<int>(bits), first);
  read_numbers(Bytes(answers).subspan(each + c0, each - c0), static_cast<int>(bits), second);
  // The differences' top four bits are uniform: 4096 numbers in 16 classes.
  std::array<i64, 16> classes{};
  for (i64 i = 0; i < n; ++i) ++classes[(first[i] - second[i]) >> (bits - 4) & 15];
  double chi = 0;
  for (const i64 count : classes) chi += std::pow(static_cast<double>(count) - 256., 2) / 256;
  EXPECT_LT(chi, 60);  // 15 degrees of freedom: 1 in 10^6
}

TEST(Columns, PublicHalvesDifferByPartPlaceAndSession) {
  const Digest one = session(1), two = session(2);
  const std::vector<Block> seeds{public_seed(one, PublicPart::key, 0),
                                 public_seed(one, PublicPart::upload, 0),
                                 public_seed(one, PublicPart::upload, 1),
                                 public_seed(two, PublicPart::key, 0),
                                 public_seed(two, PublicPart::upload, 0),
                                 tag_of(one),
                                 tag_of(two)};
  for (size_t i = 0; i < seeds.size(); ++i)
    for (size_t j = 0; j < i; ++j) EXPECT_FALSE(seeds[i] == seeds[j]) << i << " " << j;
}

TEST(Transcript, EveryFieldCounts) {
  const ColumnChoice choice = chosen(4, 8, 32);
  const std::vector<u8> label{1, 2};
  const Transcript base{0, choice, {2, 3, 4}, label};
  std::vector<Transcript> all(9, base);
  all[1].weights_owner = 1;
  all[2].choice.set.log_q = 80;
  all[3].choice.dropped = 10;
  all[4].choice.answer_bits = 42;
  all[5].shape.outputs = 3;
  all[6].shape.inner = 2;
  all[7].shape.columns = 3;
  all[8].label = Bytes(label).first(1);
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t j = 0; j < i; ++j) EXPECT_NE(digest_of(all[i]), digest_of(all[j])) << i << " " << j;
  const Digest a = session(1), b = session(2);
  EXPECT_NE(digest_of(base, a, b), digest_of(base, b, a));
  EXPECT_NE(digest_of(base, a, b), digest_of(base, a, a));
}

TEST(Columns, MalformedMessagesAreRefused) {
  ColumnChoice choice = chosen(768, 12, 44);
  choice.set = kColumnSets[2];  // words of 76 bits end within a byte
  Prg prg({1, 1});
  KeyOwner key(choice, session(1), prg);
  std::vector<u8> p0(key_bytes(choice));
  key.write_key(p0);
  EXPECT_THROW(Evaluator(choice, session(1), 1, 3, Bytes(p0).first(p0.size() - 1), prg),
               ProtocolError);
  EXPECT_THROW(Evaluator(choice, session(1), 1, 4097, p0, prg), InvalidArgument);
  Evaluator evaluator(choice, session(1), 1, 3, p0, prg);
  std::vector<u8> upload(upload_bytes(choice, 1, 3));
  EXPECT_NO_THROW(evaluator.read_ciphertext(0, upload));
  EXPECT_THROW(evaluator.read_ciphertext(1, upload), InvalidArgument);
  EXPECT_THROW(evaluator.read_ciphertext(0, Bytes(upload).first(upload.size() - 1)), ProtocolError);
  upload.back() = 0x10;  // above the last number
  EXPECT_THROW(evaluator.read_ciphertext(0, upload), ProtocolError);
  std::vector<u8> answer(answer_bytes(choice, 3));
  std::vector<u64> share(3);
  EXPECT_NO_THROW(key.decrypt(answer, share));
  EXPECT_THROW(key.decrypt(Bytes(answer).first(answer.size() - 1), share), ProtocolError);
  answer[packed_bytes(3, choice.answer_bits) - 1] = 0xff;
  ASSERT_NE(3 * choice.answer_bits % 8, 0);
  EXPECT_THROW(key.decrypt(answer, share), ProtocolError);
}

}  // namespace
}  // namespace privml::lattice
