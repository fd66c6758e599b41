// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/matmul.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "twopc/product/dense.h"
#include "twopc/product/vector_tiles.h"
#include "twopc/testing/parties.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

// Each party's words of an operand: shares, or the values at their owner.
Both<Words> placed(const Words& values, const Operand& format, u64 seed) {
  if (format.owner == kShared) return share(values, format.bits, seed);
  Both<Words> words;
  words[format.owner] = values;
  return words;
}

Words meaning(const Words& values, const Operand& format, int ell) {
  return ring_elements(values, {format.bits, format.is_signed}, ell);
}

void expect_matmul(Operand fx, Operand fy, const MatrixShape& shape, int ell,
                   ChoiceSide side = ChoiceSide::automatic, const OtKind& ot = {}) {
  const Words x = random_words(shape.rows * shape.inner, fx.bits, 1);
  const Words y = random_words(shape.inner * shape.columns, fy.bits, 2);
  const Both<Words> xs = placed(x, fx, 3), ys = placed(y, fy, 4);
  const i64 size = shape.rows * shape.columns;
  Both<Words> out{Words(size, 7), Words(size, 7)};
  const Outcome outcome = run_parties(ot, [&](ot::Party& party) {
    matmul(party, fx, xs[party.rank], fy, ys[party.rank], shape, ell, out[party.rank], side);
  });
  Words expected(size);
  add_product(meaning(x, fx, ell), meaning(y, fy, ell), shape, ell, expected);
  ASSERT_EQ(reconstruct(out, ell), expected);
  expect_cost_equals(outcome, [&](ot::CostMeter& m) { cost_matmul(m, fx, fy, shape, ell, side); });
}

TEST(Matmul, EveryPlacementShapeAndSide) {
  for (const MatrixShape& shape : {MatrixShape{1, 1, 1}, {3, 4, 5}, {1, 20, 3}, {9, 2, 1}})
    for (int ell : {8, 32, 37, 64})
      for (int x_owner : {kShared, 0, 1})
        for (int y_owner : {kShared, 0, 1})
          for (ChoiceSide side : {ChoiceSide::automatic, ChoiceSide::left, ChoiceSide::right})
            expect_matmul({x_owner, x_owner == kShared ? ell : ell - 3, true},
                          {y_owner, y_owner == kShared ? ell : 7, y_owner == 0}, shape, ell, side);
}

TEST(Matmul, OneOwnerNeedsNoMessage) {
  ot::CostMeter meter{ot::RcotCost{"ideal", 0, 1, 1}};
  cost_matmul(meter, {1, 8, true}, {1, 8, true}, {3, 4, 5}, 32);
  EXPECT_EQ(meter.bytes[0] + meter.bytes[1] + meter.cots[0] + meter.cots[1], 0);
}

TEST(Matmul, OwnedCostsOneCrossTerm) {
  ot::CostMeter owned{ot::RcotCost{"ideal", 0, 1, 1}}, shared{ot::RcotCost{"ideal", 0, 1, 1}};
  cost_matmul(owned, {kShared, 32}, {0, 32, true}, {8, 8, 8}, 32);
  cost_matmul(shared, {kShared, 32}, {kShared, 32}, {8, 8, 8}, 32);
  EXPECT_EQ(2 * (owned.bytes[0] + owned.bytes[1]), shared.bytes[0] + shared.bytes[1]);
}

TEST(Matmul, StreamsOfBothPartiesLongerThanOneTurn) {
  expect_matmul({kShared, 32}, {kShared, 32}, {16, 24, 200}, 32, ChoiceSide::left);
}

TEST(Matmul, RowsWithMoreChoicesThanAChunkAreCut) {
  const ProductBlock blocks[] = {{2, 40'000, 3}, {3, 5, 2}};
  const ProductFormat format{32, true, 32};
  i64 cots = 0, products = 0;
  for (const auto& chunk : product_chunks(blocks, format, 1)) {
    EXPECT_LE(chunk_cots(chunk, format), i64{1} << 19);
    cots += chunk_cots(chunk, format);
    for (const ProductSlice& slice : chunk) products += slice.rows * slice.inner * slice.length;
  }
  EXPECT_EQ(cots, 32 * (2 * 40'000 + 3 * 5));
  EXPECT_EQ(products, 2 * 40'000 * 3 + 3 * 5 * 2);
  expect_matmul({kShared, 32}, {0, 32, true}, {1, 17'000, 2}, 32, ChoiceSide::left);
}

TEST(Matmul, OverSoftSpoken) {
  expect_matmul({kShared, 32}, {0, 12, true}, {2, 30, 10}, 32, ChoiceSide::automatic, {false, 4});
  expect_matmul({kShared, 40}, {kShared, 40}, {2, 5, 3}, 40, ChoiceSide::automatic, {false, 8});
}

TEST(Matmul, RefusesWrongWidthsAndLengths) {
  Words x(6), out(4);
  run_parties({}, [&](ot::Party& party) {
    EXPECT_THROW(matmul(party, {kShared, 31}, x, {kShared, 32}, x, {2, 3, 2}, 32, out),
                 InvalidArgument);
    EXPECT_THROW(matmul(party, {kShared, 32}, x, {0, 33}, x, {2, 3, 2}, 32, out), InvalidArgument);
    EXPECT_THROW(matmul(party, {kShared, 32}, x, {kShared, 32}, x, {2, 2, 2}, 32, out),
                 InvalidArgument);
    EXPECT_THROW(matmul(party, {2, 32}, x, {kShared, 32}, x, {2, 3, 2}, 32, out), InvalidArgument);
  });
}

}  // namespace
}  // namespace privml::twopc
