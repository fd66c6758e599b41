// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/packed_matmul.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "twopc/product/dense.h"
#include "twopc/testing/parties.h"
#include "twopc/width/truncation.h"

namespace privml {
namespace {

using namespace privml::testing;

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
void expect_products(int owner, int levels, const std::vector<Product>& products,
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
  const Outcome outcome = run_parties(ot, [&](Party& party) {
    const int r = party.rank;
    PackingKeys keys{owner, levels};
    for (size_t i = 0; i < products.size(); ++i) {
      const Product& p = products[i];
      out[r].emplace_back(p.shape.rows * p.shape.columns);
      packed_matmul(party, keys, p.x, xs[i][r], p.weights, ws[i][r], p.shape, p.ell, out[r].back());
    }
    EXPECT_EQ(keys.products, std::ssize(products));
  });
  for (size_t i = 0; i < products.size(); ++i)
    EXPECT_EQ(reconstruct({out[0][i], out[1][i]}, products[i].ell), expected[i]) << i;
  expect_cost_equals(outcome, [&](CostMeter& meter) {
    for (size_t i = 0; i < products.size(); ++i)
      cost_packed_matmul(meter, levels, static_cast<i64>(i), products[i].weights, products[i].shape,
                         products[i].ell);
  });
}

TEST(PackedMatmul, ProductsOfManyShapesShareTheKeys) {
  for (const int owner : {0, 1}) {
    const Operand w{owner, 8, true}, unsigned_w{owner, 7, false};
    const Operand known{1 - owner, 20, true};
    expect_products(owner, 5,
                    {{{kShared, 32}, w, {1, 1, 1}, 32},
                     {{kShared, 37}, w, {3, 70, 40}, 37},
                     {known, unsigned_w, {130, 5, 33}, 44},
                     {{kShared, 8}, {owner, 5, true}, {2, 130, 2}, 8},
                     {{kShared, 32}, w, {4096, 2, 2}, 32}});
  }
}

TEST(PackedMatmul, OverSoftSpoken) {
  expect_products(0, 3, {{{kShared, 44}, {0, 12, true}, {16, 30, 20}, 44}}, {false, 4});
}

TEST(PackedMatmul, TheGapWithTheFewestBytesIsTaken) {
  const auto levels = [](const MatrixShape& shape) {
    return packed_choice(shape, {0, 12, true}, 44, 5)->levels;
  };
  EXPECT_EQ(levels({128, 768, 768}), 5);
  EXPECT_EQ(levels({4096, 768, 768}), 0);
  EXPECT_EQ(levels({1000, 768, 768}), 2);
  EXPECT_FALSE(packed_choice({4097, 2, 2}, {0, 12, true}, 44, 5));
  EXPECT_FALSE(packed_choice({1, 2, 2}, {0, 30, true}, 44, 5));
  EXPECT_FALSE(packed_choice({1, 2, 2}, {0, 12, true}, 60, 5));
}

TEST(PackedMatmul, BytesOfOneTransformerProduct) {
  CostMeter first{RcotCost{"ideal", 0, 1, i64{1} << 40}}, next = first;
  cost_packed_matmul(first, 5, 0, {0, 12, true}, {128, 768, 768}, 44);
  cost_packed_matmul(next, 5, 1, {0, 12, true}, {128, 768, 768}, 44);
  CostMeter noise{RcotCost{"ideal", 0, 1, i64{1} << 40}};
  cost_truncate_reduce(noise, 128 * 768, 53, 9);
  const auto total = [](const CostMeter& meter) { return meter.bytes[0] + meter.bytes[1]; };
  EXPECT_LT(total(next) - total(noise), 2'200'000);
  EXPECT_EQ(total(first) - total(next), 128 + lattice::switching_bytes(5));
}

TEST(PackedMatmul, OtherProductsAndKeysAreRefused) {
  const MatrixShape shape{2, 3, 2};
  run_parties({}, [&](Party& party) {
    PackingKeys keys{0, party.rank == 0 ? 3 : 2};
    const Words x(6), w(party.rank == 0 ? 6 : 0);
    Words out(4);
    EXPECT_THROW(packed_matmul(party, keys, {kShared, 32}, x, {0, 8, true}, w, shape, 32, out),
                 ProtocolError);
  });
  for (const int difference : {1, 2}) {
    int refused = 0;
    try {
      run_parties({}, [&](Party& party) {
        const bool owns = party.rank == 0;
        PackingKeys keys{0, 2};
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

TEST(PackedMatmul, KeysAreForSoManyProductsOfOneOwner) {
  run_parties({}, [&](Party& party) {
    PackingKeys keys{0, 2};
    keys.products = lattice::kMostPackedProducts;
    const Words x(6), w(party.rank == 0 ? 6 : 0);
    Words out(4);
    const auto product = [&](Operand fx, Operand fw) {
      packed_matmul(party, keys, fx, x, fw, w, {2, 3, 2}, 32, out);
    };
    EXPECT_THROW(product({kShared, 32}, {0, 8, true}), InvalidArgument);
    keys.products = 0;
    EXPECT_THROW(product({kShared, 32}, {1, 8, true}), InvalidArgument);
    EXPECT_THROW(product({kShared, 31}, {0, 8, true}), InvalidArgument);
    EXPECT_EQ(party.channel.traffic().sent, 0);
  });
}

}  // namespace
}  // namespace privml
