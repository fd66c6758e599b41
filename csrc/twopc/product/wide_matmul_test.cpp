// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/wide_matmul.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "twopc/product/agreement.h"
#include "twopc/product/dense.h"
#include "twopc/product/last_bit.h"
#include "twopc/testing/parties.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

Both<Words> placed(const Words& values, const Operand& format, u64 seed) {
  if (format.owner == kShared) return share(values, format.bits, seed);
  Both<Words> words;
  words[format.owner] = values;
  return words;
}

Words expected_products(const WideProduct& product, const Words& x, const Words& y) {
  const auto& [rows, inner, columns] = product.shape;
  const Words left = ring_elements(x, {product.x.bits, product.x.is_signed}, product.ell);
  const Words right = ring_elements(y, {product.y.bits, product.y.is_signed}, product.ell);
  Words out(product.batch * rows * columns);
  for (i64 b = 0; b < product.batch; ++b)
    add_product(std::span(left).subspan(b * rows * inner, rows * inner),
                std::span(right).subspan(b * inner * columns, inner * columns), product.shape,
                product.ell, std::span(out).subspan(b * rows * columns, rows * columns));
  return out;
}

struct Factors {
  Words x, y;
};

Factors random_factors(const WideProduct& product, u64 seed = 1) {
  const auto& [rows, inner, columns] = product.shape;
  return {random_words(product.batch * rows * inner, product.x.bits, seed),
          random_words(product.batch * inner * columns, product.y.bits, seed + 1)};
}

// The results; where a last bit is kept, which may be either, without it.
Words results(const WideProduct& product, const Both<Words>& out) {
  if (!product.keeps_last_bit) return reconstruct(out, product.ell);
  Words values = reconstruct(out, product.ell + 1);
  for (u64& value : values) value >>= 1;
  return values;
}

// Products one after another in one session: exact, and of the costs that are predicted.
void expect_products(const std::vector<WideProduct>& products, const std::vector<Factors>& factors,
                     const OtKind& ot = {}) {
  std::vector<Both<Words>> xs, ys, outs(products.size());
  for (size_t i = 0; i < products.size(); ++i) {
    xs.push_back(placed(factors[i].x, products[i].x, 3 + i));
    ys.push_back(placed(factors[i].y, products[i].y, 100 + i));
  }
  const Outcome outcome = run_parties(ot, [&](ot::Party& party) {
    const int r = party.rank;
    WideSession session;
    session.threads = 1 + r;  // each party's own affair
    for (size_t i = 0; i < products.size(); ++i) {
      const MatrixShape& shape = products[i].shape;
      outs[i][r].resize(products[i].batch * shape.rows * shape.columns);
      wide_matmul(party, session, products[i], xs[i][r], ys[i][r], outs[i][r]);
    }
  });
  for (size_t i = 0; i < products.size(); ++i)
    ASSERT_EQ(results(products[i], outs[i]),
              expected_products(products[i], factors[i].x, factors[i].y))
        << i;
  expect_cost_equals(outcome, [&](ot::CostMeter& meter) {
    WideSession session;
    for (const WideProduct& product : products) cost_wide_matmul(meter, session, product);
  });
}

void expect_products(const std::vector<WideProduct>& products, const OtKind& ot = {}) {
  std::vector<Factors> factors;
  for (const WideProduct& product : products) factors.push_back(random_factors(product));
  expect_products(products, factors, ot);
}

WideProduct shared(i64 batch, const MatrixShape& shape, int ell) {
  return {batch, shape, {kShared, ell}, {kShared, ell}, ell};
}

TEST(WideMatmul, AllSmallShapes) {
  std::vector<WideProduct> products;
  for (i64 batch = 1; batch <= 2; ++batch)
    for (i64 rows = 1; rows <= 3; ++rows)
      for (i64 inner = 1; inner <= 3; ++inner)
        for (i64 columns = 1; columns <= 3; ++columns)
          products.push_back(shared(batch, {rows, inner, columns}, 32));
  expect_products(products);
}

TEST(WideMatmul, EveryWidth) {
  std::vector<WideProduct> products;
  for (int ell = 1; ell <= 64; ++ell) products.push_back(shared(1, {3, 5, 4}, ell));
  expect_products(products);
}

TEST(WideMatmul, ShapesOfManyKinds) {
  expect_products({shared(1, {1, 130, 2}, 37), shared(1, {130, 1, 1}, 37),
                   shared(3, {2, 3, 129}, 37), shared(1, {64, 64, 64}, 37),
                   shared(4, {32, 32, 32}, 37), shared(12, {1, 16, 20}, 37)});
}

TEST(WideMatmul, RowsBeyondOnePolynomial) {
  expect_products({shared(1, {4097, 2, 2}, 20), shared(2, {2, 3, 4100}, 20)});
}

WideProduct at_price(WideProduct product, std::optional<i64> byte_price) {
  product.byte_price = byte_price;
  return product;
}

// Where bytes are cheap, more columns are multiplied at once and fewer keys switched.
TEST(WideMatmul, CheapBytesSaveWork) {
  WideProduct row = shared(1, {1, 400, 120}, 32);
  row.y = {0, 12, true};
  for (const WideProduct& product :
       {row, shared(1, {32, 128, 384}, 32), shared(4, {32, 32, 32}, 32)}) {
    const auto numbers = [&](std::optional<i64> byte_price) {
      const WidePlan plan = plan_wide(at_price(product, byte_price), {}).value();
      EXPECT_LE(plan.log2_failure, lattice::kRequiredFailure);
      std::array<double, 2> sums{};
      for (const WideSide& side : plan.sides) {
        if (side.terms.empty()) continue;
        sums[0] += work_of(side, {side.new_levels});
        sums[1] += static_cast<double>(side.upload_bytes + side.answer_bytes);
        if (byte_price) continue;
        for (const WideTerm& term : side.terms) EXPECT_EQ(term.shape.columns_at_once(), 1);
      }
      return sums;
    };
    const auto cheap = numbers(1), dear = numbers(1000);
    EXPECT_LT(cheap[0], 0.6 * dear[0]);
    EXPECT_GT(cheap[1], dear[1]);
    EXPECT_LE(numbers(std::nullopt)[1], dear[1]);
  }
}

// Where one message meets many columns, its images are taken in place of those of products.
TEST(WideMatmul, LongRowsTakeImagesOfUploads) {
  WideProduct row = at_price(shared(1, {1, 768, 6000}, 57), 30);
  row.y = {0, 16, true};
  const WidePlan plan = plan_wide(row, {}).value();
  EXPECT_LE(plan.log2_failure, lattice::kRequiredFailure);
  EXPECT_GT(plan.sides[1].terms.at(0).shape.upload_levels, 0);
  expect_products({row, at_price(shared(1, {2, 200, 1000}, 40), 30)});
  const WidePlan of_bytes = plan_wide(at_price(row, std::nullopt), {}).value();
  EXPECT_EQ(of_bytes.sides[1].terms.at(0).shape.upload_levels, 0);
}

// Factors of 64 bits leave no room for images, and noise leaves none where a modulus is nearly used
// up: other levels serve there, at a price that grows with the width alone.
TEST(WideMatmul, PricesGrowWithTheWidth) {
  double last = 0;
  for (int ell = 24; ell <= 64; ++ell) {
    WideProduct row = at_price(shared(1, {1, 768, 768}, ell), 30);
    row.y = {0, std::min(ell, 16), true};
    const WidePlan plan = plan_wide(row, {}).value();
    const WideSide& side = plan.sides[1];
    const double bytes = static_cast<double>(side.upload_bytes + side.answer_bytes);
    const double price = work_of(side, {side.new_levels}) + 30 * bytes;
    if (ell > 24) {
      EXPECT_LT(price, 1.6 * last) << ell;
    }
    last = price;
  }
  for (const MatrixShape& shape : {MatrixShape{1, 768, 768}, MatrixShape{16, 64, 64}}) {
    const auto bytes = [&](int ell) {
      const WidePlan plan = plan_wide(at_price(shared(1, shape, ell), 30), {}).value();
      i64 sum = 0;
      for (const WideSide& side : plan.sides) sum += side.upload_bytes + side.answer_bytes;
      return static_cast<double>(sum);
    };
    EXPECT_LT(bytes(64), 1.5 * bytes(62));
  }
}

TEST(WideMatmul, EveryPriceOfBytes) {
  for (const i64 price : {0, 1, 10, 100}) {
    WideProduct owned = shared(1, {2, 300, 60}, 32);
    owned.y = {0, 12, true};
    std::vector<WideProduct> products{owned};
    for (const WideProduct& product :
         {shared(1, {1, 130, 40}, 37), shared(1, {130, 3, 5}, 37), shared(3, {2, 3, 129}, 37),
          shared(1, {64, 64, 64}, 37), shared(4, {32, 32, 32}, 64), shared(1, {4097, 2, 9}, 20),
          shared(1, {1, 1, 1}, 20)})
      products.push_back(product);
    for (WideProduct& product : products) product = at_price(product, price);
    products.push_back(at_price(products[1], 1000));
    products.push_back(at_price(products[1], std::nullopt));
    expect_products(products);
  }
}

TEST(WideMatmul, PlansThatWereMadeAreThoseOfTheirProductsAndKeys) {
  WidePlans plans;
  std::array<WideKeyStates, 2> some{};
  const WideProduct product = shared(1, {32, 128, 384}, 32);
  for (int i = 0; i < 2; ++i)
    for (const i64 price : {1, 1000})
      for (const unsigned kept : {0U, 0b10100U}) {
        for (auto& states : some)
          for (WideKeyState& state : states) state = {kept != 0, 0, i, {kept}};
        const WidePlan expected = plan_wide(at_price(product, price), some).value();
        const WidePlan& found = plans.of(at_price(product, price), some).value();
        for (const int r : {0, 1}) {
          EXPECT_EQ(found.sides[r].key_bytes, expected.sides[r].key_bytes);
          EXPECT_EQ(found.sides[r].upload_bytes, expected.sides[r].upload_bytes);
          EXPECT_EQ(found.sides[r].new_levels, expected.sides[r].new_levels);
        }
      }
}

TEST(WideMatmul, EveryPlacement) {
  std::vector<WideProduct> products;
  for (const int ell : {8, 32, 64})
    for (const int x : {kShared, 0, 1})
      for (const int y : {kShared, 0, 1}) {
        if (x == y && x != kShared) continue;
        for (const bool is_signed : {false, true})
          for (const int bits : {5, ell}) {
            const auto operand = [&](int owner) {
              return Operand{owner, owner == kShared ? ell : bits, is_signed || owner == kShared};
            };
            products.push_back({2, {3, 6, 4}, operand(x), operand(y), ell});
          }
      }
  expect_products(products);
}

TEST(WideMatmul, ExtremesAtEveryBound) {
  for (const int ell : {1, 16, 32, 33, 36, 44, 48, 64}) {
    std::vector<WideProduct> products;
    std::vector<Factors> factors;
    const WideProduct product = shared(1, {9, 150, 33}, ell);
    const u64 least = u64{1} << (ell - 1), most = least - 1;
    for (const u64 a : {u64{0}, least, most, low_mask(ell)})
      for (const u64 b : {least, most}) {
        for (const i64 price : {1, 1000}) {
          products.push_back(product);
          products.back().byte_price = price;
          factors.push_back({Words(9 * 150, a), Words(150 * 33, b)});
        }
      }
    expect_products(products, factors);
  }
}

// Shares themselves at their extremes: a party's share of one factor, the other's of the other.
TEST(WideMatmul, SharesAtTheirExtremes) {
  const int ell = 32;
  const WideProduct product = shared(1, {16, 64, 16}, ell);
  const u64 least = u64{1} << 31;
  Both<Words> out{Words(256), Words(256)};
  const Both<Words> x{Words(1024, least), Words(1024, 0)}, y{Words(1024, 0), Words(1024, least)};
  run_parties({}, [&](ot::Party& party) {
    WideSession session;
    wide_matmul(party, session, product, x[party.rank], y[party.rank], out[party.rank]);
  });
  EXPECT_EQ(reconstruct(out, ell),
            expected_products(product, Words(1024, least), Words(1024, least)));
}

// The most noise that a plan allows, with shares that are all the same: they are not multiples of
// 1 / q, and what is left of each has the same sign.
TEST(WideMatmul, EqualSharesWhereNoiseHasNoRoomToSpare) {
  const int ell = 37;
  const WideProduct product = shared(1, {16, 43689, 1}, ell);
  const u64 least = u64{1} << 36, left = least + 26;
  const Words x(16 * 43689, least), y(43689, left);
  Both<Words> out{Words(16), Words(16)};
  run_parties({}, [&](ot::Party& party) {
    WideSession session;
    wide_matmul(party, session, product, x, y, out[party.rank]);
  });
  const u64 expected = (4 * 43689 * least * left) & low_mask(ell);
  EXPECT_EQ(reconstruct(out, ell), Words(16, expected));
}

// Weights of one sign add up the means of uploads' errors, several columns at once even more.
TEST(WideMatmul, MeansOfRoundingErrorsDoNotAddUp) {
  WideProduct product = at_price(shared(1, {1, 768, 3072}, 64), 30);
  product.y = {0, 64};
  const Words x = random_words(768, 64, 8), y(768 * 3072, u64{1} << 63);
  expect_products({product}, {{x, y}});
}

WideProduct with_last_bit(WideProduct product) {
  product.keeps_last_bit = true;
  return product;
}

TEST(WideMatmul, EveryWidthWithTheLastBit) {
  std::vector<WideProduct> products;
  for (int ell = 1; ell <= 63; ++ell) products.push_back(with_last_bit(shared(1, {3, 5, 4}, ell)));
  expect_products(products);
}

// Of shared factors that both parties encrypt, of those that one encrypts, and of owned ones.
TEST(WideMatmul, EveryPlacementWithTheLastBit) {
  WideProduct right = shared(1, {8, 9, 7}, 21), left = right, both = right;
  right.y = {0, 7, true};
  left.x = {1, 21, true};
  both.x = {1, 9, false};
  both.y = {0, 7, true};
  std::vector<WideProduct> products;
  for (const WideProduct& product :
       {right, left, both, shared(4, {32, 32, 32}, 20), shared(1, {128, 768, 768}, 32),
        at_price(shared(1, {32, 128, 96}, 32), 1), at_price(right, 0)})
    products.push_back(with_last_bit(product));
  const auto sides = [](const WideProduct& product) {
    const WidePlan plan = plan_wide(product, {}).value();
    return !plan.sides[0].terms.empty() + !plan.sides[1].terms.empty();
  };
  EXPECT_EQ(sides(products[3]), 1);
  EXPECT_EQ(sides(products[4]), 2);
  const WidePlan several = plan_wide(products[5], {}).value();
  for (const WideSide& side : several.sides)
    for (const WideTerm& term : side.terms) EXPECT_GT(term.shape.columns_at_once(), 1);
  expect_products(products);
}

// Both values of the last bit are met, and it is not that of a share.
TEST(WideMatmul, TheLastBitIsOfNoise) {
  const WideProduct product = with_last_bit(shared(1, {16, 64, 16}, 32));
  Both<Words> out{Words(256), Words(256)};
  const Words zeros(1024);
  run_parties({}, [&](ot::Party& party) {
    WideSession session;
    wide_matmul(party, session, product, zeros, zeros, out[party.rank]);
  });
  const Words found = reconstruct(out, 33);
  EXPECT_GT(std::ranges::count(found, u64{0}), 64);
  EXPECT_EQ(std::ranges::count(found, u64{0}) + std::ranges::count(found, u64{1}), 256);
}

// Shares of both parties' ciphertexts are one sum, whose last bit is dropped once.
TEST(WideMatmul, BothSidesHaveOneLastBitToDrop) {
  for (const WideProduct& product :
       {shared(12, {128, 64, 128}, 32), shared(1, {128, 768, 768}, 32)}) {
    const WidePlan plan = plan_wide(product, {}).value();
    i64 bytes = 2 * static_cast<i64>(sizeof(crypto::Block)) + 2 * kAgreementBytes;
    for (const WideSide& side : plan.sides) {
      i64 answers = 0;
      for (const WideTerm& term : side.terms)
        answers += term.shape.answers() * lattice::wide_answer_bytes(side.choice);
      EXPECT_EQ(side.answer_bytes, answers);  // halves c1 alone
      bytes += side.key_bytes + side.upload_bytes + side.answer_bytes;
    }
    const ot::RcotCost ideal{"ideal", 0, 1, i64{1} << 40};
    ot::CostMeter whole(ideal), dropped = whole;
    WideSession session;
    cost_wide_matmul(whole, session, product);
    cost_drop_last_bit(dropped, product.batch * product.shape.rows * product.shape.columns, 32);
    EXPECT_EQ(whole.cots, dropped.cots);
    EXPECT_EQ(whole.bytes[0] + whole.bytes[1], bytes + dropped.bytes[0] + dropped.bytes[1]);
  }
}

TEST(WideMatmul, TheLastBitTakesAMessageToDrop) {
  ot::CostMeter dropped(ot::RcotCost{"ideal", 0, 1, i64{1} << 40}), kept = dropped;
  WideSession one, other;
  const WideProduct product = shared(4, {32, 32, 32}, 20);
  cost_wide_matmul(dropped, one, product);
  cost_wide_matmul(kept, other, with_last_bit(product));
  EXPECT_EQ(std::ranges::max(dropped.depth), std::ranges::max(kept.depth) + 1);
  EXPECT_LT(kept.bytes[0] + kept.bytes[1], dropped.bytes[0] + dropped.bytes[1]);
  EXPECT_THROW(cost_wide_matmul(kept, other, with_last_bit(shared(1, {2, 2, 2}, 64))),
               InvalidArgument);
}

TEST(WideMatmul, OtherTransfers) {
  expect_products({shared(2, {5, 9, 7}, 44), shared(2, {5, 9, 7}, 44)}, OtKind{false, 4});
}

TEST(WideMatmul, KeysServeFurtherProductsUntilTheyAreUsedUp) {
  const WideProduct product = shared(1, {8, 8, 8}, 32);
  ot::CostMeter meter(ot::rcot_cost(OtKind{}.config()));
  WideSession session;
  std::vector<i64> bytes;
  for (int i = 0; i < 3; ++i) {
    const i64 before = meter.bytes[0] + meter.bytes[1];
    cost_wide_matmul(meter, session, product);
    bytes.push_back(meter.bytes[0] + meter.bytes[1] - before);
  }
  EXPECT_LT(bytes[1], bytes[0]);
  EXPECT_EQ(bytes[1], bytes[2]);

  const Factors factors = random_factors(product);
  const Both<Words> x = share(factors.x, 32, 3), y = share(factors.y, 32, 4);
  std::array<Both<Words>, 4> out;
  const auto use_up = [](WideSession& all) {
    for (auto& states : all.states)
      for (WideKeyState& state : states)
        if (state.made) state.products = lattice::kMostWideProducts - 1;
  };
  const Outcome outcome = run_parties({}, [&](ot::Party& party) {
    const int r = party.rank;
    WideSession own;
    for (size_t i = 0; i < out.size(); ++i) {
      if (i == 1) use_up(own);
      out[i][r].resize(64);
      wide_matmul(party, own, product, x[r], y[r], out[i][r]);
    }
    i64 renewed = 0;
    for (const auto& states : own.states)
      for (const WideKeyState& state : states) renewed += state.generation;
    EXPECT_GE(renewed, 1);
  });
  for (const auto& one : out)
    EXPECT_EQ(reconstruct(one, 32), expected_products(product, factors.x, factors.y));
  expect_cost_equals(outcome, [&](ot::CostMeter& m) {
    WideSession own;
    for (size_t i = 0; i < out.size(); ++i) {
      if (i == 1) use_up(own);
      cost_wide_matmul(m, own, product);
    }
  });
}

// Both parties encrypt if one factor has many more elements than the other.
TEST(WideMatmul, PlansTakeTheFewestBytes) {
  const auto terms = [](const WideProduct& product) {
    const WidePlan plan = plan_wide(product, {}).value();
    EXPECT_LE(plan.log2_failure, lattice::kRequiredFailure);
    return std::array{plan.sides[0].terms.size(), plan.sides[1].terms.size()};
  };
  EXPECT_EQ(terms(shared(12, {128, 64, 128}, 32)), (std::array<size_t, 2>{0, 2}));
  EXPECT_EQ(terms(shared(1, {128, 768, 768}, 32)), (std::array<size_t, 2>{1, 1}));
  // Owned factors have one term, which their owner encrypts if that is shorter.
  WideProduct owned = shared(1, {128, 768, 768}, 32);
  owned.y = {0, 12, true};
  EXPECT_EQ(terms(owned), (std::array<size_t, 2>{0, 1}));
  owned = shared(1, {768, 768, 16}, 32);
  owned.y = {0, 12, true};
  EXPECT_EQ(terms(owned), (std::array<size_t, 2>{1, 0}));
}

// Attention and the product of the comparison with other systems, keys included.
TEST(WideMatmul, BytesAreThoseOfTheArithmetic) {
  const auto bytes = [](const WideProduct& product, int products) {
    ot::CostMeter meter(ot::RcotCost{"ideal", 0, 1, i64{1} << 40});
    WideSession session;
    for (int i = 0; i < products; ++i) cost_wide_matmul(meter, session, product);
    return meter.bytes[0] + meter.bytes[1];
  };
  const WideProduct linear = shared(1, {128, 768, 768}, 32);
  const i64 first = bytes(linear, 1), second = bytes(linear, 2) - first;
  EXPECT_LT(first, 3'800'000);
  EXPECT_LT(second, 3'300'000);
  EXPECT_GT(second, 3'200'000);
  EXPECT_LT(bytes(shared(12, {128, 64, 128}, 32), 2) - bytes(shared(12, {128, 64, 128}, 32), 1),
            4'800'000);
}

TEST(WideMatmul, RefusesWhatNoPlanServes) {
  EXPECT_FALSE(plan_wide(shared(1, {0, 3, 2}, 32), {}));
  EXPECT_FALSE(plan_wide(shared(0, {1, 3, 2}, 32), {}));
  EXPECT_FALSE(plan_wide(shared(1, {1, (1 << 16) + 1, 2}, 32), {}));
  EXPECT_FALSE(plan_wide(shared(i64{1} << 40, {i64{1} << 20, 1, i64{1} << 20}, 32), {}));
  EXPECT_FALSE(plan_wide({1, {2, 3, 2}, {0, 32}, {0, 8}, 32}, {}));
  // Numbers of ciphertexts, of which a product has 2^32, would be those of the next product.
  EXPECT_FALSE(plan_wide(shared(i64{1} << 26, {1, 1 << 16, 1}, 64), {}));
  Words x(6), y(6), out(4);
  run_parties({}, [&](ot::Party& party) {
    WideSession session;
    const auto multiply = [&](const WideProduct& product) {
      wide_matmul(party, session, product, x, y, out);
    };
    EXPECT_THROW(multiply(shared(1, {2, 4, 2}, 32)), InvalidArgument);
    EXPECT_THROW(multiply({1, {2, 3, 2}, {kShared, 31}, {kShared, 32}, 32}), InvalidArgument);
    EXPECT_THROW(multiply({1, {2, 3, 2}, {kShared, 65}, {kShared, 65}, 65}), InvalidArgument);
    EXPECT_THROW(multiply({1, {2, 3, 2}, {0, 32}, {0, 32}, 32}), InvalidArgument);
    EXPECT_EQ(party.channel.traffic().sent, 0);  // before anything is sent
  });
}

TEST(WideMatmul, PartiesThatDisagreeFindOut) {
  for (const int difference : {0, 1, 2, 3, 4}) {
    int refused = 0;
    try {
      run_parties({}, [&](ot::Party& party) {
        WideSession session;
        WideProduct product = shared(1, {2, 3, 2}, 32);
        const Words x(6), y(6);
        Words out(4);
        wide_matmul(party, session, product, x, y, out);
        if (party.rank == 1) {
          if (difference == 0) product.ell = product.x.bits = product.y.bits = 31;
          if (difference == 4) product.keeps_last_bit = true;
          if (difference == 1) product.shape = {3, 2, 3};
          if (difference == 2)
            for (auto& states : session.states)
              for (WideKeyState& state : states) state.products += state.made;
          if (difference == 4) product.byte_price = 0;
          // Keys for more levels, which the plan of this party alone counts on.
          if (difference == 3)
            for (auto& states : session.states)
              for (WideKeyState& state : states) state.levels.kept |= 0xff;
        }
        out.resize(product.shape.rows * product.shape.columns);
        wide_matmul(party, session, product, x, y, out);
      });
    } catch (const ProtocolError&) {
      ++refused;
    } catch (const PeerDisconnected&) {
    }
    EXPECT_EQ(refused, 1) << difference;
  }
}

// Lengths of all messages depend on shapes alone.
TEST(WideMatmul, TrafficOfExtremeValuesHasOneForm) {
  std::array<net::Traffic, 2> first;
  const WideProduct product = shared(2, {3, 40, 5}, 44);
  for (const u64 value : {u64{0}, u64{1} << 43, low_mask(43)}) {
    const Words x(240, value), y(400, value);
    const Both<Words> xs = share(x, 44, 1), ys = share(y, 44, 2);
    Both<Words> out{Words(30), Words(30)};
    const Outcome outcome = run_parties({}, [&](ot::Party& party) {
      WideSession session;
      wide_matmul(party, session, product, xs[party.rank], ys[party.rank], out[party.rank]);
    });
    EXPECT_EQ(reconstruct(out, 44), expected_products(product, x, y));
    if (value == 0) first = outcome.record.traffic;
    for (const int r : {0, 1}) {
      EXPECT_EQ(outcome.record.traffic[r].sent, first[r].sent);
      EXPECT_EQ(outcome.record.traffic[r].depth, first[r].depth);
    }
  }
}

// Shares of a result are fresh: equal products have other shares each time, of the whole ring.
TEST(WideMatmul, SharesOfResultsAreUniform) {
  const WideProduct product = shared(1, {16, 4, 16}, 32);
  const Words x(64, 3), y(64, 5);
  Both<std::vector<Words>> out;
  run_parties({}, [&](ot::Party& party) {
    WideSession session;
    for (int i = 0; i < 2; ++i) {
      out[party.rank].emplace_back(256);
      // One party's shares are zeros, the other's the values.
      const Words zeros(64);
      wide_matmul(party, session, product, party.rank ? zeros : x, party.rank ? zeros : y,
                  out[party.rank].back());
    }
  });
  for (const int r : {0, 1}) {
    u64 any = 0, every = ~u64{0};
    for (size_t i = 0; i < 256; ++i) {
      EXPECT_NE(out[r][0][i], out[r][1][i]);
      any |= out[r][0][i];
      every &= out[r][0][i];
    }
    EXPECT_EQ(any, low_mask(32));
    EXPECT_EQ(every, 0U);
  }
}

}  // namespace
}  // namespace privml::twopc
