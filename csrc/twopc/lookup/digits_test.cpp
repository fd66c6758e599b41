// SPDX-License-Identifier: Apache-2.0
#include "twopc/lookup/digits.h"

#include <gtest/gtest.h>

#include <bit>

#include "twopc/compare/nonzero_bit.h"
#include "twopc/testing/parties.h"
#include "twopc/width/conversion.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

void expect_digits(const Both<Words>& x, int ell, int digit_bits, const OtKind& ot = {}) {
  const i64 n = std::ssize(x[0]), count = digit_count(ell, digit_bits);
  Both<Words> out{Words(count * n), Words(count * n)};
  const Outcome outcome = run_parties(ot, [&](ot::Party& party) {
    digits(party, x[party.rank], ell, digit_bits, out[party.rank]);
  });
  const Words values = reconstruct(x, ell);
  for (i64 j = 0; j < count; ++j) {
    const int bits = std::min<int>(digit_bits, ell - static_cast<int>(j) * digit_bits);
    for (i64 k = 0; k < n; ++k)
      ASSERT_EQ((out[0][j * n + k] + out[1][j * n + k]) & low_mask(bits),
                (values[k] >> (j * digit_bits)) & low_mask(bits))
          << ell << " " << digit_bits << " digit " << j << " shares " << x[0][k] << " " << x[1][k];
  }
  expect_cost_equals(outcome, [&](ot::CostMeter& m) { cost_digits(m, n, ell, digit_bits); });
}

TEST(Digits, AllSharesAtSmallWidths) {
  for (int ell = 1; ell <= 7; ++ell)
    for (int digit_bits = 1; digit_bits <= ell; ++digit_bits)
      expect_digits(all_share_pairs(ell), ell, digit_bits);
}

TEST(Digits, RandomAndEdgeValues) {
  for (const auto& [ell, digit_bits] :
       {std::pair{32, 8}, {38, 8}, {64, 8}, {37, 5}, {64, 1}, {64, 64}})
    expect_digits(share(random_words(200, ell, 1), ell), ell, digit_bits);
}

TEST(Digits, LongerThanAChunkAndSoftSpoken) {
  expect_digits(share(random_words((1 << 15) + 9, 6, 1), 6), 6, 3);
  expect_digits(share(random_words(100, 32, 1), 32), 32, 8, {false, 4});
}

void expect_nonzero_bit(const Both<Words>& x, int ell, const OtKind& ot = {}, i64 factor = 1) {
  const i64 n = std::ssize(x[0]);
  Both<Bits> out{Bits(n * ell), Bits(n * ell)};
  const Outcome outcome = run_parties(ot, [&](ot::Party& party) {
    party.chunk_factor = factor;
    most_significant_nonzero_bit(party, x[party.rank], ell, out[party.rank]);
  });
  Both<Bits> or_none{Bits(n * ell), Bits(n * ell)};
  const Outcome same_cost = run_parties(ot, [&](ot::Party& party) {
    party.chunk_factor = factor;
    most_significant_nonzero_bit_or_none(party, x[party.rank], ell, or_none[party.rank]);
  });
  const Words values = reconstruct(x, ell);
  const Bits bits = reconstruct_bits(out), bits_or_none = reconstruct_bits(or_none);
  for (i64 k = 0; k < n; ++k) {
    const int place = values[k] == 0 ? 0 : std::bit_width(values[k]) - 1;
    for (int j = 0; j < ell; ++j)
      ASSERT_EQ(bits[k * ell + j], j == place ? 1 : 0)
          << ell << " value " << values[k] << " place " << j;
    for (int j = 0; j < ell; ++j)
      ASSERT_EQ(bits_or_none[k * ell + j], values[k] != 0 && j == place ? 1 : 0)
          << ell << " value " << values[k] << " place " << j;
  }
  for (const Outcome& run : {outcome, same_cost})
    expect_cost_equals(run, [&](ot::CostMeter& m) {
      m.chunk_factor = factor;
      cost_most_significant_nonzero_bit(m, n, ell);
    });
}

TEST(NonzeroBit, AllSharesAtSmallWidths) {
  for (int ell = 1; ell <= 8; ++ell) expect_nonzero_bit(all_share_pairs(ell), ell);
}

TEST(NonzeroBit, RandomOfEveryLengthAndZero) {
  for (int ell : {9, 32, 37, 38, 64}) {
    Words values = random_words(200, ell, 1);
    for (int i = 0; i < 3 * ell; ++i) values.push_back(values[i % 200] >> (i % ell));
    values.push_back(0);
    expect_nonzero_bit(share(values, ell), ell);
  }
}

TEST(NonzeroBit, LongerThanAChunkAndSoftSpoken) {
  expect_nonzero_bit(share(random_words((1 << 15) + 9, 6, 1), 6), 6);
  expect_nonzero_bit(share(random_words(100, 32, 1), 32), 32, {false, 4});
}

TEST(NonzeroBit, OverASlowLink) {
  for (int ell = 1; ell <= 7; ++ell) expect_nonzero_bit(all_share_pairs(ell), ell, {}, 32);
  for (int ell : {8, 9, 19, 25, 31, 32, 38, 64}) {
    Words values = random_words(40, ell, 1);
    for (int i = 0; i < 3 * ell; ++i) values.push_back(values[i % 40] >> (i % ell));
    expect_nonzero_bit(share(values, ell), ell, {}, 32);
  }
}

// Messages in a row: two for the digits, one for each level of the prefix, two for the choices.
TEST(NonzeroBit, Depth) {
  const auto depth = [](i64 factor, i64 n, int ell) {
    ot::CostMeter meter(ot::rcot_cost(OtKind{}.config()));
    meter.chunk_factor = factor;
    cost_most_significant_nonzero_bit(meter, n, ell);
    return meter.depth[0];
  };
  EXPECT_EQ(depth(1, 1000, 4), 2);
  EXPECT_LE(depth(1, 1000, 25), 7);
  EXPECT_LE(depth(1, 1000, 31), 8);
  EXPECT_EQ(depth(32, 128, 19), 5);
  EXPECT_EQ(depth(32, 32, 25), 6);
}

TEST(NonzeroBit, IndexFromTheOneHotVector) {
  const int ell = 38, width = 6;
  const Both<Words> x = share(random_words(100, ell, 1), ell);
  Words table(ell);
  for (int j = 0; j < ell; ++j) table[j] = j;
  Both<Words> index{Words(100), Words(100)};
  run_parties({}, [&](ot::Party& party) {
    Bits one_hot(100 * ell);
    Words place(100);
    most_significant_nonzero_bit(party, x[party.rank], ell, one_hot);
    one_hot_select(one_hot, table, place);
    xor_to_additive(party, place, width, index[party.rank]);
  });
  const Words values = reconstruct(x, ell), places = reconstruct(index, width);
  for (i64 k = 0; k < 100; ++k)
    ASSERT_EQ(places[k], values[k] == 0 ? 0 : static_cast<u64>(std::bit_width(values[k]) - 1));
}

void expect_conversion(const Both<Words>& z, int width, const OtKind& ot = {}) {
  const i64 n = std::ssize(z[0]);
  Both<Words> out{Words(n), Words(n)};
  const Outcome outcome = run_parties(
      ot, [&](ot::Party& party) { xor_to_additive(party, z[party.rank], width, out[party.rank]); });
  const Words values = reconstruct(out, width);
  for (i64 i = 0; i < n; ++i) ASSERT_EQ(values[i], (z[0][i] ^ z[1][i]) & low_mask(width)) << width;
  expect_cost_equals(outcome, [&](ot::CostMeter& m) { cost_xor_to_additive(m, n, width); });
}

TEST(XorToAdditive, AllSharesAndWideWords) {
  for (int width = 1; width <= 6; ++width) expect_conversion(all_share_pairs(width), width);
  for (int width : {16, 32, 37, 64})
    expect_conversion({random_words(100, width, 1), random_words(100, width, 2)}, width);
  expect_conversion({random_words(70000, 2, 1), random_words(70000, 2, 2)}, 2);
  expect_conversion({random_words(100, 16, 1), random_words(100, 16, 2)}, 16, {false, 4});
}

}  // namespace
}  // namespace privml::twopc
