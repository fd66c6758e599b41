// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/cross_terms.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "twopc/product/dense.h"
#include "twopc/testing/parties.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

u64 value_of(u64 word, KnownFormat format) { return ring_elements({&word, 1}, format, 64)[0]; }

void expect_elementwise(const Words& x, const Words& y, KnownFormat left, KnownFormat right,
                        int ell, int holder, ChoiceSide side, const OtKind& ot = {}) {
  Both<Words> out{Words(x.size()), Words(x.size())};
  const Outcome outcome = run_parties(ot, [&](ot::Party& party) {
    cross_term(party, holder, party.rank == holder ? x : y, left, right, ell, side,
               out[party.rank]);
  });
  const Words product = reconstruct(out, ell);
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_EQ(product[i], (value_of(x[i], left) * value_of(y[i], right)) & low_mask(ell))
        << left.bits << " " << right.bits << " " << ell << " at " << i;
  expect_cost_equals(outcome, [&](ot::CostMeter& m) {
    cost_cross_term(m, holder, std::ssize(x), left, right, ell, side);
  });
}

TEST(CrossTerm, AllValuesAtSmallWidths) {
  for (int m = 1; m <= 4; ++m) {
    for (int n = 1; n <= 4; ++n) {
      Words x, y;
      for (u64 a = 0; a < u64{1} << m; ++a)
        for (u64 b = 0; b < u64{1} << n; ++b) x.push_back(a), y.push_back(b);
      for (int ell = 1; ell <= m + n; ++ell)
        for (int signs = 0; signs < 4; ++signs)
          for (ChoiceSide side : {ChoiceSide::left, ChoiceSide::right})
            expect_elementwise(x, y, {m, (signs & 1) != 0}, {n, (signs & 2) != 0}, ell, signs & 1,
                               side);
    }
  }
}

TEST(CrossTerm, RandomAndEdgeValues) {
  for (const auto& [m, n, ell] :
       {std::array{8, 32, 32}, {16, 16, 32}, {37, 12, 37}, {64, 64, 64}, {32, 8, 40}})
    for (bool is_signed : {false, true})
      for (ChoiceSide side : {ChoiceSide::automatic, ChoiceSide::left, ChoiceSide::right})
        expect_elementwise(random_words(50, m, 3), random_words(50, n, 4), {m, is_signed},
                           {n, is_signed}, ell, 1, side);
}

TEST(CrossTerm, LongerThanAChunk) {
  const i64 n = (i64{1} << 16) + 77;
  expect_elementwise(random_words(n, 3, 5), random_words(n, 9, 6), {3, true}, {9, true}, 12, 0,
                     ChoiceSide::automatic);
}

TEST(CrossTerm, OverSoftSpoken) {
  expect_elementwise(random_words(300, 16, 7), random_words(300, 16, 8), {16, true}, {16, true}, 32,
                     0, ChoiceSide::automatic, {false, 4});
}

TEST(CrossTerm, NothingAndBadArguments) {
  expect_elementwise({}, {}, {8, true}, {8, true}, 16, 0, ChoiceSide::automatic);
  Words word{1}, out(1);
  run_parties({}, [&](ot::Party& party) {
    Words none;
    EXPECT_THROW(cross_term(party, 0, word, {65, true}, {8, true}, 16, ChoiceSide::left, out),
                 InvalidArgument);
    EXPECT_THROW(cross_term(party, 0, word, {8, true}, {8, true}, 0, ChoiceSide::left, out),
                 InvalidArgument);
    EXPECT_THROW(cross_term(party, 0, word, {8, true}, {8, true}, 16, ChoiceSide::left, none),
                 InvalidArgument);
  });
}

TEST(CrossTerms, BothDirections) {
  for (const auto& [m, n, ell] : {std::array{4, 4, 8}, {32, 32, 32}, {64, 64, 64}, {9, 17, 20}}) {
    for (i64 count : {1, 40}) {
      const Both<Words> x{random_words(count, m, 1), random_words(count, m, 2)};
      const Both<Words> y{random_words(count, n, 3), random_words(count, n, 4)};
      Both<Words> out{Words(count), Words(count)};
      const Outcome outcome = run_parties({}, [&](ot::Party& party) {
        cross_terms(party, x[party.rank], y[party.rank], {m, false}, {n, false}, ell,
                    out[party.rank]);
      });
      const Words sum = reconstruct(out, ell);
      for (i64 i = 0; i < count; ++i)
        ASSERT_EQ(sum[i], (x[0][i] * y[1][i] + x[1][i] * y[0][i]) & low_mask(ell));
      expect_cost_equals(outcome, [&](ot::CostMeter& meter) {
        cost_cross_terms(meter, count, {m, false}, {n, false}, ell);
      });
    }
  }
}

void expect_matrix(const MatrixShape& shape, KnownFormat left, KnownFormat right, int ell,
                   int holder, ChoiceSide side, const OtKind& ot = {}) {
  const Words x = random_words(shape.rows * shape.inner, left.bits, 11);
  const Words y = random_words(shape.inner * shape.columns, right.bits, 12);
  const i64 size = shape.rows * shape.columns;
  Both<Words> out{Words(size, 99), Words(size, 99)};
  const Outcome outcome = run_parties(ot, [&](ot::Party& party) {
    matrix_cross_term(party, holder, party.rank == holder ? x : y, shape, left, right, ell, side,
                      out[party.rank]);
  });
  Words expected(size);
  for (i64 r = 0; r < shape.rows; ++r)
    for (i64 c = 0; c < shape.columns; ++c)
      for (i64 b = 0; b < shape.inner; ++b)
        expected[r * shape.columns + c] +=
            value_of(x[r * shape.inner + b], left) * value_of(y[b * shape.columns + c], right);
  for (u64& word : expected) word &= low_mask(ell);
  ASSERT_EQ(reconstruct(out, ell), expected);
  expect_cost_equals(outcome, [&](ot::CostMeter& m) {
    cost_matrix_cross_term(m, holder, shape, left, right, ell, side);
  });
}

TEST(MatrixCrossTerm, ShapesWidthsAndSides) {
  for (const MatrixShape& shape :
       {MatrixShape{1, 1, 1}, {3, 5, 4}, {1, 17, 2}, {6, 1, 7}, {2, 9, 300}, {40, 3, 1}})
    for (const auto& [m, n, ell] :
         {std::array{1, 1, 1}, {4, 7, 13}, {8, 32, 32}, {12, 33, 33}, {64, 64, 64}})
      for (ChoiceSide side : {ChoiceSide::automatic, ChoiceSide::left, ChoiceSide::right})
        for (bool is_signed : {false, true})
          expect_matrix(shape, {m, is_signed}, {n, !is_signed}, ell, is_signed ? 0 : 1, side);
}

TEST(MatrixCrossTerm, LongRowsSpanTiles) {
  expect_matrix({2, 3, 9000}, {3, true}, {20, true}, 20, 0, ChoiceSide::left);
  expect_matrix({2, 3, 9000}, {2, true}, {40, true}, 40, 0, ChoiceSide::left);
}

TEST(MatrixCrossTerm, MoreChoicesThanAChunk) {
  expect_matrix({700, 30, 1}, {32, true}, {32, true}, 32, 1, ChoiceSide::left);
}

TEST(MatrixCrossTerm, OverSoftSpoken) {
  expect_matrix({5, 20, 6}, {12, true}, {32, false}, 32, 0, ChoiceSide::automatic, {false, 4});
  expect_matrix({5, 20, 6}, {12, true}, {37, false}, 37, 1, ChoiceSide::left, {false, 8});
}

TEST(MatrixCrossTerm, TheCheaperSideIsTaken) {
  const KnownFormat narrow{8, true}, wide{32, false};
  EXPECT_EQ(choose_side({1, 400, 120}, wide, {12, true}, 32), ChoiceSide::left);
  EXPECT_EQ(choose_side({128, 400, 120}, wide, narrow, 32), ChoiceSide::right);
  EXPECT_EQ(choose_side({120, 400, 128}, narrow, wide, 32), ChoiceSide::left);
}

TEST(Dense, ProductAgainstSchoolbook) {
  for (const MatrixShape& s : {MatrixShape{1, 1, 1}, {3, 70, 5}, {5, 7, 1100}})
    for (int ell : {5, 32, 33, 64}) {
      const Words x = random_words(s.rows * s.inner, ell, 1),
                  y = random_words(s.inner * s.columns, ell, 2);
      Words out(s.rows * s.columns, 1), expected(s.rows * s.columns, 1);
      add_product(x, y, s, ell, out);
      for (i64 r = 0; r < s.rows; ++r)
        for (i64 c = 0; c < s.columns; ++c) {
          for (i64 b = 0; b < s.inner; ++b)
            expected[r * s.columns + c] += x[r * s.inner + b] * y[b * s.columns + c];
          expected[r * s.columns + c] &= low_mask(ell);
        }
      ASSERT_EQ(out, expected);
    }
}

}  // namespace
}  // namespace privml::twopc
