// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/packed_matmul.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "twopc/product/dense.h"
#include "twopc/product/last_bit.h"
#include "twopc/testing/parties.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

constexpr lattice::SwitchingSet kNarrow = lattice::kSwitchingSets[1];

struct Product {
  Operand x, weights;
  MatrixShape shape;
  int ell;
};

Both<Words> placed(const Words& values, const Operand& format, u64 seed) {
  if (format.owner == kShared) return share(values, format.bits, seed);
  Both<Words> words;
  words[format.owner] = values;
  return words;
}

// All in one session with one set of keys.
void expect_products(int owner, int set, const std::vector<Product>& products,
                     const OtKind& ot = {}) {
  Both<std::vector<Words>> out;
  std::vector<Words> x, w, expected;
  std::vector<Both<Words>> xs, ws;
  for (const Product& p : products) {
    x.push_back(random_words(p.shape.rows * p.shape.inner, p.x.bits, x.size()));
    w.push_back(random_words(p.shape.inner * p.shape.columns, p.weights.bits, 50 + x.size()));
    xs.push_back(placed(x.back(), p.x, 3));
    ws.push_back(placed(w.back(), p.weights, 4));
    expected.emplace_back(p.shape.rows * p.shape.columns);
    add_product(ring_elements(x.back(), {p.x.bits, p.x.is_signed}, p.ell),
                ring_elements(w.back(), {p.weights.bits, p.weights.is_signed}, p.ell), p.shape,
                p.ell, expected.back());
  }
  const Outcome outcome = run_parties(ot, [&](ot::Party& party) {
    const int r = party.rank;
    PackingKeys keys{owner, lattice::kSwitchingSets[set], 1 + 2 * r};
    for (size_t i = 0; i < products.size(); ++i) {
      const Product& p = products[i];
      out[r].emplace_back(p.shape.rows * p.shape.columns);
      packed_matmul(party, keys, p.x, xs[i][r], p.weights, ws[i][r], p.shape, p.ell, out[r].back());
    }
    EXPECT_EQ(keys.products, std::ssize(products));
  });
  for (size_t i = 0; i < products.size(); ++i)
    EXPECT_EQ(reconstruct({out[0][i], out[1][i]}, products[i].ell), expected[i]) << i;
  expect_cost_equals(outcome, [&](ot::CostMeter& meter) {
    for (size_t i = 0; i < products.size(); ++i)
      cost_packed_matmul(meter, lattice::kSwitchingSets[set], static_cast<i64>(i),
                         products[i].weights, products[i].shape, products[i].ell);
  });
}

TEST(PackedMatmul, ProductsOfManyShapesShareTheKeys) {
  for (const int owner : {0, 1}) {
    const Operand w{owner, 8, true}, unsigned_w{owner, 7, false};
    const Operand known{1 - owner, 20, true};
    expect_products(owner, 2,
                    {{{kShared, 32}, w, {1, 1, 1}, 32},
                     {{kShared, 32}, w, {1, 300, 150}, 32},
                     {{kShared, 37}, w, {3, 70, 40}, 37},
                     {known, unsigned_w, {130, 5, 33}, 44},
                     {{kShared, 8}, {owner, 5, true}, {2, 130, 2}, 8},
                     {{kShared, 32}, w, {4096, 2, 2}, 32}});
  }
}

TEST(PackedMatmul, FewDigitsInNarrowRings) {
  for (int set = 6; set < 9; ++set)
    expect_products(1, set,
                    {{{kShared, 24}, {1, 9, true}, {1, 84, 70}, 24},
                     {{kShared, 20}, {1, 9, true}, {2, 30, 10}, 20}});
}

TEST(PackedMatmul, OverSoftSpokenWithOneKey) {
  expect_products(0, 0, {{{kShared, 44}, {0, 12, true}, {16, 30, 20}, 44}}, {false, 4});
}

TEST(PackedMatmul, TheGapWithTheFewestBytesIsTaken) {
  const auto levels = [](const MatrixShape& shape) {
    return packed_choice(shape, {0, 12, true}, 43, kNarrow)->levels;
  };
  EXPECT_EQ(levels({128, 768, 768}), 5);
  EXPECT_EQ(levels({4096, 768, 768}), 0);
  EXPECT_EQ(levels({1000, 768, 768}), 2);
  EXPECT_EQ(packed_choice({1, 400, 120}, {0, 9, true}, 23, lattice::kSwitchingSets[8])->levels, 7);
  EXPECT_FALSE(packed_choice({4097, 2, 2}, {0, 12, true}, 44, kNarrow));
  EXPECT_FALSE(packed_choice({1, 2, 2}, {0, 30, true}, 44, kNarrow));
  EXPECT_FALSE(packed_choice({1, 2, 2}, {0, 12, true}, 60, kNarrow));
}

TEST(PackedMatmul, BytesOfOneTransformerProduct) {
  ot::CostMeter first{ot::RcotCost{"ideal", 0, 1, i64{1} << 40}}, next = first;
  cost_packed_matmul(first, kNarrow, 0, {0, 12, true}, {128, 768, 768}, 43);
  cost_packed_matmul(next, kNarrow, 1, {0, 12, true}, {128, 768, 768}, 43);
  ot::CostMeter noise{ot::RcotCost{"ideal", 0, 1, i64{1} << 40}};
  cost_drop_last_bit(noise, 128 * 768, 43);
  const auto total = [](const ot::CostMeter& meter) { return meter.bytes[0] + meter.bytes[1]; };
  EXPECT_LT(total(next) - total(noise), 1'660'000);
  EXPECT_EQ(total(first) - total(next), 128 + lattice::switching_bytes(kNarrow));
}

TEST(PackedMatmul, OtherProductsAndKeysAreRefused) {
  const MatrixShape shape{2, 3, 2};
  run_parties({}, [&](ot::Party& party) {
    PackingKeys keys{0, lattice::kSwitchingSets[party.rank]};
    const Words x(6), w(party.rank == 0 ? 6 : 0);
    Words out(4);
    EXPECT_THROW(packed_matmul(party, keys, {kShared, 32}, x, {0, 8, true}, w, shape, 32, out),
                 ProtocolError);
  });
  for (const int difference : {1, 2}) {
    int refused = 0;
    try {
      run_parties({}, [&](ot::Party& party) {
        const bool owns = party.rank == 0;
        PackingKeys keys{0, kNarrow};
        const Words x(6), w(owns ? 6 : 0);
        Words out(4);
        const auto next = [&](int bits) {
          packed_matmul(party, keys, {kShared, 32}, x, {0, bits, true}, w, shape, 32, out);
        };
        next(8);
        if (difference == 1 && !owns) keys.products = 5;
        if (difference == 2 && !owns)
          return packed_matmul(party, keys, {kShared, 31}, x, {0, 8, true}, w, shape, 31, out);
        next(8);
      });
    } catch (const ProtocolError&) {
      ++refused;
    } catch (const PeerDisconnected&) {
    }
    EXPECT_EQ(refused, 1) << difference;
  }
}

TEST(PackedMatmul, KeysServeProductsOfOneOwner) {
  run_parties({}, [&](ot::Party& party) {
    PackingKeys keys{0, kNarrow};
    const Words x(6), w(party.rank == 0 ? 6 : 0);
    Words out(4);
    const auto product = [&](Operand fx, Operand fw) {
      packed_matmul(party, keys, fx, x, fw, w, {2, 3, 2}, 32, out);
    };
    EXPECT_THROW(product({kShared, 32}, {1, 8, true}), InvalidArgument);
    EXPECT_THROW(product({kShared, 31}, {0, 8, true}), InvalidArgument);
    EXPECT_EQ(party.channel.traffic().sent, 0);
  });
}

// The last product that they may serve, and the next one, whose keys are new.
TEST(PackedMatmul, KeysAreMadeAnewWhenTheyAreUsedUp) {
  const MatrixShape shape{2, 3, 2};
  const Words w = random_words(6, 8, 1), x = random_words(6, 32, 2);
  const Both<Words> xs = share(x, 32);
  Words expected(4);
  add_product(x, ring_elements(w, {8, true}, 32), shape, 32, expected);
  Both<std::vector<Words>> out;
  Both<std::vector<lattice::Digest>> digests;
  const Outcome outcome = run_parties({}, [&](ot::Party& party) {
    const int r = party.rank;
    PackingKeys keys{0, kNarrow};
    const Words mine = r == 0 ? w : Words{};
    for (int i = 0; i < 4; ++i) {
      if (i == 1) keys.products = lattice::kMostPackedProducts - 1;
      out[r].emplace_back(4);
      packed_matmul(party, keys, {kShared, 32}, xs[r], {0, 8, true}, mine, shape, 32,
                    out[r].back());
      digests[r].push_back(keys.digest);
    }
  });
  for (int i = 0; i < 4; ++i) EXPECT_EQ(reconstruct({out[0][i], out[1][i]}, 32), expected) << i;
  EXPECT_EQ(digests[0], digests[1]);
  EXPECT_EQ(digests[0][0], digests[0][1]);
  EXPECT_NE(digests[0][1], digests[0][2]);
  EXPECT_EQ(digests[0][2], digests[0][3]);
  expect_cost_equals(outcome, [&](ot::CostMeter& meter) {
    const i64 most = lattice::kMostPackedProducts;
    for (const i64 product : {i64{0}, most - 1, most, most + 1})
      cost_packed_matmul(meter, kNarrow, product, {0, 8, true}, shape, 32);
  });
}

}  // namespace
}  // namespace privml::twopc
