// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/prepared_line.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "twopc/testing/parties.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

struct Shares {
  Both<Words> constant, factor, u;
};

u64 value_of(const Both<Words>& words, size_t i, WordFormat format) {
  if (format.bits == 0) return 0;
  const u64 word = (words[0][i] ^ words[1][i]) & low_mask(format.bits);
  return format.is_signed ? static_cast<u64>(to_signed(word, format.bits)) : word;
}

// Both orders of the flights give the linear function, at the cost of the parts.
void expect_line(const LinearShape& shape, const Shares& shares, const OtKind& ot = {}) {
  const i64 n = std::ssize(shares.u[0]);
  for (const bool words_first : {false, true}) {
    Both<Words> out{Words(n), Words(n)};
    const Outcome outcome = run_parties(ot, [&](ot::Party& party) {
      const int r = party.rank;
      const auto cots =
          ot::count_correlations(party, [&](ot::CostMeter& m) { cost_draw_line(m, n, shape); });
      ot::reserve(party, cots[r], cots[1 - r]);
      PreparedLine line;
      draw_line(party, n, shape, line);
      const auto words = [&] {
        write_words(party, shares.constant[r], shares.factor[r], line);
        read_words(party, line);
      };
      if (words_first) words();
      write_number(party, shares.u[r], line);
      read_number(party, line);
      if (!words_first) words();
      line_value(line, shares.constant[r], shares.u[r], out[r]);
    });
    const Words result = reconstruct(out, shape.ell);
    for (i64 i = 0; i < n; ++i) {
      const u64 expected =
          (value_of(shares.constant, i, shape.constant) << shape.constant_shift) +
          value_of(shares.factor, i, shape.factor) * (shares.u[0][i] + shares.u[1][i]);
      ASSERT_EQ(result[i], expected & low_mask(shape.ell)) << "at " << i;
    }
    expect_cost_equals(outcome, [&](ot::CostMeter& meter) {
      const auto cots =
          ot::count_correlations(meter, [&](ot::CostMeter& m) { cost_draw_line(m, n, shape); });
      meter.reserve(cots[0], cots[1]);
      cost_draw_line(meter, n, shape);
      cost_flight(meter, words_first ? words_flight(n, shape) : number_flight(n, shape));
      cost_flight(meter, words_first ? number_flight(n, shape) : words_flight(n, shape));
    });
  }
}

Both<Words> share_words(i64 n, int bits, u64 seed) {
  const Words words = random_words(n, bits, seed);
  Both<Words> shares{random_words(n, bits, seed ^ 0xabcd), words};
  for (i64 i = 0; i < n; ++i) shares[1][i] ^= shares[0][i];
  add_noise_above(shares, bits);
  return shares;
}

TEST(PreparedLine, AllSharesOfSmallWords) {
  const Both<Words> factor = all_share_pairs(2), u = all_share_pairs(3);
  Shares shares;
  for (size_t i = 0; i < factor[0].size(); ++i)
    for (size_t j = 0; j < u[0].size(); ++j)
      for (int r : {0, 1}) {
        shares.factor[r].push_back(factor[r][i]);
        shares.u[r].push_back(u[r][j]);
        shares.constant[r].push_back((u[r][j] + factor[r][i]) & 7);
      }
  for (bool is_signed : {false, true})
    for (int shift : {0, 1, 2, 3, 5})
      expect_line({{3, is_signed}, shift, {2, is_signed}, 3}, shares);
}

TEST(PreparedLine, RandomAtRealWidths) {
  for (const auto& [constant, shift, factor, ell] :
       {std::tuple{18, 9, 10, 32}, {15, 30, 12, 37}, {64, 0, 64, 64}, {1, 0, 1, 1}, {20, 4, 1, 16}})
    for (bool is_signed : {false, true})
      for (const OtKind& ot : {OtKind{}, OtKind{false, 4}})
        for (i64 n : {2, 301})
          expect_line({{constant, is_signed}, shift, {factor, is_signed}, ell},
                      {share_words(n, constant, 3), share_words(n, factor, 5),
                       share(random_words(n, ell, 7), ell, 8)},
                      ot);
}

TEST(PreparedLine, OneWordAlone) {
  const i64 n = 300;
  expect_line({{13, true}, 2, {}, 30},
              {share_words(n, 13, 3), {}, share(random_words(n, 21, 7), 21, 8)});
  expect_line({{}, 0, {13, true}, 21},
              {{}, share_words(n, 13, 3), share(random_words(n, 21, 7), 21, 8)});
}

TEST(PreparedLine, ServesOnce) {
  const LinearShape shape{{}, 0, {3}, 8};
  run_parties({}, [&](ot::Party& party) {
    const Words numbers(4, 1);
    PreparedLine line;
    draw_line(party, 4, shape, line);
    write_number(party, numbers, line);
    read_number(party, line);
    write_words(party, {}, numbers, line);
    read_words(party, line);
    EXPECT_THROW(write_number(party, numbers, line), InvalidArgument);
    EXPECT_THROW(write_words(party, {}, numbers, line), InvalidArgument);
  });
}

TEST(PreparedLine, RefusesWhatDoesNotFit) {
  run_parties({}, [&](ot::Party& party) {
    PreparedLine line;
    EXPECT_THROW(draw_line(party, 4, {{3}, 0, {}, 65}, line), InvalidArgument);
    EXPECT_THROW(draw_line(party, 4, {{3}, 64, {}, 64}, line), InvalidArgument);
    EXPECT_THROW(draw_line(party, 4, {{}, 0, {9}, 8}, line), InvalidArgument);
  });
}

}  // namespace
}  // namespace privml::twopc
