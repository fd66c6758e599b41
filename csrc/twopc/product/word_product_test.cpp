// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/word_product.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "twopc/testing/parties.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

u64 value_of(u64 word, WordFormat format) {
  if (format.bits == 0) return 0;
  return format.is_signed ? static_cast<u64>(to_signed(word, format.bits)) : word;
}

Both<Words> share_words(const Words& words, int bits, u64 seed) {
  Both<Words> shares{random_words(std::ssize(words), bits, seed ^ 0xabcd), words};
  for (size_t i = 0; i < words.size(); ++i) shares[1][i] ^= shares[0][i];
  return shares;
}

void expect_linear(const LinearShape& shape, const Both<Words>& constant, const Both<Words>& factor,
                   const Both<Words>& u, i64 n, const OtKind& ot = {}) {
  Both<Words> out{Words(n), Words(n)};
  const Outcome outcome = run_parties(ot, [&](ot::Party& party) {
    const int r = party.rank;
    linear_words(party, shape, constant[r], factor[r], u[r], out[r]);
  });
  const Words result = reconstruct(out, shape.ell);
  for (i64 i = 0; i < n; ++i) {
    u64 expected = 0;
    if (shape.constant.bits)
      expected += value_of((constant[0][i] ^ constant[1][i]) & low_mask(shape.constant.bits),
                           shape.constant)
                  << shape.constant_shift;
    if (shape.factor.bits)
      expected +=
          value_of((factor[0][i] ^ factor[1][i]) & low_mask(shape.factor.bits), shape.factor) *
          (u[0][i] + u[1][i]);
    ASSERT_EQ(result[i], expected & low_mask(shape.ell)) << "at " << i;
  }
  expect_cost_equals(outcome, [&](ot::CostMeter& m) { cost_linear_words(m, n, shape); });
}

TEST(LinearWords, AllSharesOfSmallWords) {
  const Both<Words> factor = all_share_pairs(2), u = all_share_pairs(3);
  Both<Words> factors, numbers, constants;
  for (size_t i = 0; i < factor[0].size(); ++i)
    for (size_t j = 0; j < u[0].size(); ++j)
      for (int r : {0, 1}) {
        factors[r].push_back(factor[r][i]);
        numbers[r].push_back(u[r][j]);
        constants[r].push_back((u[r][j] + factor[r][i]) & 7);
      }
  const i64 n = std::ssize(numbers[0]);
  for (bool is_signed : {false, true})
    for (int shift : {0, 1, 2, 3, 5})
      expect_linear({{3, is_signed}, shift, {2, is_signed}, 3}, constants, factors, numbers, n);
}

TEST(LinearWords, RandomAtRealWidths) {
  for (const auto& [constant, shift, factor, ell] :
       {std::tuple{18, 9, 10, 27}, {15, 30, 12, 37}, {64, 0, 64, 64}, {1, 0, 1, 1}, {20, 4, 1, 16}})
    for (bool is_signed : {false, true}) {
      const i64 n = 500;
      const Both<Words> c = share_words(random_words(n, constant, 3), constant, 4),
                        f = share_words(random_words(n, factor, 5), factor, 6),
                        u = share(random_words(n, ell, 7), ell, 8);
      expect_linear({{constant, is_signed}, shift, {factor, is_signed}, ell}, c, f, u, n);
    }
}

TEST(LinearWords, OneWordAlone) {
  const i64 n = 300;
  const Both<Words> word = share_words(random_words(n, 13, 3), 13, 4),
                    u = share(random_words(n, 21, 7), 21, 8);
  expect_linear({{13, true}, 2, {}, 30}, word, {}, {}, n);
  expect_linear({{}, 0, {13, true}, 21}, {}, word, u, n);
  expect_linear({{13, false}, 0, {}, 13}, word, {}, {}, n, {false, 4});
  for (i64 few : {0, 1, 2})
    expect_linear({{13, false}, 0, {13, true}, 21}, share_words(Words(few, 5), 13, 1),
                  share_words(Words(few, 6), 13, 2), share(Words(few, 7), 21), few);
}

TEST(LinearWords, CostsOfSeveralLengths) {
  expect_costs_equal([](i64 n) -> std::vector<CostRow> {
    const LinearShape shape{{6, false}, 3, {4, true}, 20};
    return {{[=](ot::Party& p) {
               const Words word(n, 5);
               Words out(n);
               linear_words(p, shape, word, word, word, out);
             },
             [=](ot::CostMeter& m) { cost_linear_words(m, n, shape); }},
            {[=](ot::Party& p) {
               const Words word(n, 5);
               Words out(n);
               multiply_word(p, word, {4, false}, word, 12, out);
             },
             [=](ot::CostMeter& m) { cost_multiply_word(m, n, {4, false}, 12); }},
            {[=](ot::Party& p) {
               const Words word(n, 5);
               Words out(n);
               word_to_ring(p, word, {4, false}, 12, out);
             },
             [=](ot::CostMeter& m) { cost_word_to_ring(m, n, {4, false}, 12); }}};
  });
}

TEST(LinearWords, RefusesWhatDoesNotFit) {
  Words word(4), out(4), three(3);
  run_parties({}, [&](ot::Party& party) {
    EXPECT_THROW(linear_words(party, {{65}, 0, {}, 64}, word, {}, {}, out), InvalidArgument);
    EXPECT_THROW(linear_words(party, {{3}, 64, {}, 64}, word, {}, {}, out), InvalidArgument);
    EXPECT_THROW(linear_words(party, {{3}, 0, {}, 65}, word, {}, {}, out), InvalidArgument);
    EXPECT_THROW(linear_words(party, {{3}, 0, {}, 20}, three, {}, {}, out), InvalidArgument);
    EXPECT_THROW(linear_words(party, {{}, 0, {9}, 8}, {}, word, word, out), InvalidArgument);
    EXPECT_THROW(linear_words(party, {{}, 0, {3}, 8}, {}, word, {}, out), InvalidArgument);
  });
}

}  // namespace
}  // namespace privml::twopc
