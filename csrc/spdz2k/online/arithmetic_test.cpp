// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "spdz2k/online/bits.h"
#include "spdz2k/online/matrix_product.h"
#include "spdz2k/online/multiply.h"
#include "spdz2k/shares/check.h"
#include "spdz2k/shares/input_output.h"
#include "spdz2k/testing/tampered_run.h"

namespace privml::spdz2k::testing {
namespace {

template <class R>
class Spdz2kArithmetic : public ::testing::Test {};
using Rings = ::testing::Types<Ring8, Ring32, Ring64>;
TYPED_TEST_SUITE(Spdz2kArithmetic, Rings);

// All pairs of a few values and edges; for k = 8 all of 65536.
template <class R>
Both<Words> pairs() {
  const Words values = R::k == 8 ? all_words(8) : random_words(40, R::k);
  Both<Words> out;
  for (const u64 x : values) {
    for (const u64 y : values) {
      out[0].push_back(x);
      out[1].push_back(y);
    }
  }
  return out;
}

TYPED_TEST(Spdz2kArithmetic, ProductsAndSquares) {
  using R = TypeParam;
  const auto [x, y] = pairs<R>();
  const i64 n = std::ssize(x);
  const auto a = share<R>(x, 2), b = share<R>(y, 3);
  Both<WordShares<R>> products{WordShares<R>(n), WordShares<R>(n)}, squares = products;
  const Outcome outcome = run_parties<R>([&](Session<R>& session) {
    const int rank = session.rank;
    multiply<R>(session, a[rank], b[rank], products[rank]);
    square<R>(session, a[rank], squares[rank]);
    check(session);
  });
  const Words product_values = reconstruct<R>(products, R::k),
              square_values = reconstruct<R>(squares, R::k);
  for (i64 i = 0; i < n; ++i) {
    ASSERT_EQ(product_values[i], low_bits(x[i] * y[i], R::k));
    ASSERT_EQ(square_values[i], low_bits(x[i] * x[i], R::k));
  }
  CostMeter meter;
  multiply<R>({meter, n}, {}, {}, {});
  square<R>({meter, n}, {}, {});
  EXPECT_EQ(meter.bytes[0], n * 3 * R::k / 8);
  cost_check<R>(meter);
  expect_cost_equals(outcome, meter);
}

struct Matrices {
  MatrixShape shape;
  i64 n;
};

TYPED_TEST(Spdz2kArithmetic, MatrixProductsInParts) {
  using R = TypeParam;
  // Single products, a triple, transposes, and parts in each of the three directions.
  for (const auto& [shape, n] : {Matrices{{3, 5, 4}, 1},
                                 {{2, 3, 4}, 3},
                                 {{1, 1, 1}, 2},
                                 {{0, 3, 2}, 1},
                                 {{2, 0, 3}, 1},
                                 {{1, 300, 1}, 1},
                                 {{7, 6, 8}, 3},
                                 {{9, 7, 5}, 2},
                                 {{1, 530, 1000}, 1},
                                 {{2, 3, 1100}, 2},
                                 {{270, 2, 280}, 1},
                                 {{37, 61, 60}, 1}}) {
    const auto [rows, inner, columns] = shape;
    const Words x = random_words(n * rows * inner, R::k, 4),
                y = random_words(n * inner * columns, R::k, 5);
    const auto a = share<R>(x, 6), b = share<R>(y, 7);
    const i64 size = n * rows * columns;
    Both<WordShares<R>> out{WordShares<R>(size), WordShares<R>(size)};
    const Outcome outcome = run_parties<R>([&](Session<R>& session) {
      const int rank = session.rank;
      multiply_matrices<R>(session, a[rank], b[rank], shape, n, out[rank]);
      check(session);
    });
    const Words values = reconstruct<R>(out, R::k);
    for (i64 i = 0; i < n * rows; ++i) {
      for (i64 j = 0; j < columns; ++j) {
        u64 expected = 0;
        for (i64 l = 0; l < inner; ++l) {
          expected += x[i * inner + l] * y[(i / rows * inner + l) * columns + j];
        }
        ASSERT_EQ(values[i * columns + j], low_bits(expected, R::k));
      }
    }
    CostMeter meter;
    multiply_matrices<R>({meter, 0}, {}, {}, shape, n, {});
    cost_check<R>(meter);
    expect_cost_equals(outcome, meter);
  }
  CostMeter meter;  // a convolution's factors are opened once
  multiply_matrices<R>({meter, 0}, {}, {}, {6, 25, 784}, 1, {});
  EXPECT_EQ(meter.bytes[0], (6 * 25 + 25 * 784) * R::k / 8);
  EXPECT_EQ(meter.depth[0], 1);
  EXPECT_EQ(meter.demand.triples, 0);
}

TYPED_TEST(Spdz2kArithmetic, ProductsInPlaceAndInParts) {
  using R = TypeParam;
  const Words x = random_words(kProducts + 3, R::k, 8);
  auto a = share<R>(x, 9);
  const Outcome outcome = run_parties<R>([&](Session<R>& session) {
    multiply<R>(session, a[session.rank], a[session.rank], a[session.rank]);
  });
  const Words values = reconstruct<R>(a, R::k);
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(values[i], low_bits(x[i] * x[i], R::k));
  CostMeter meter;
  multiply<R>({meter, std::ssize(x)}, {}, {}, {});
  EXPECT_EQ(meter.depth[0], 2);
  expect_cost_equals(outcome, meter);
}

TYPED_TEST(Spdz2kArithmetic, BitsTimesBitsAndToNumbers) {
  using R = TypeParam;
  const i64 n = 501;
  const Words x = random_words(n, 1, 2), y = random_words(n, 1, 3);
  const auto a = share_bits<R>(x, 4), b = share_bits<R>(y, 5);
  Both<BitShares<R>> both{BitShares<R>(n), BitShares<R>(n)};
  auto sum = b;
  Both<WordShares<R>> numbers{WordShares<R>(n), WordShares<R>(n)};
  const Outcome outcome = run_parties<R>([&](Session<R>& session) {
    const int rank = session.rank;
    // The second gate's output is the first one's input.
    const std::array<AndGate<R>, 2> gates{
        AndGate<R>{a[rank], sum[rank], both[rank]},
        AndGate<R>{a[rank], b[rank], sum[rank], true},
    };
    and_gates<R>(session, gates);
    bits_to_ring<R>(session, a[rank], numbers[rank]);
    check(session);
  });
  const Words products = reconstruct<R>(both, 1), sums = reconstruct<R>(sum, 1),
              words = reconstruct<R>(numbers, R::k);
  for (i64 i = 0; i < n; ++i) {
    ASSERT_EQ(products[i], x[i] & y[i]);
    ASSERT_EQ(sums[i], y[i] ^ (x[i] & y[i]));
    ASSERT_EQ(words[i], x[i]);
  }
  CostMeter meter;
  and_bits<R>({meter, 2 * n}, {}, {}, {});
  bits_to_ring<R>({meter, n}, {}, {});
  EXPECT_EQ(meter.bytes[0], packed_bytes(4 * n, 1) + packed_bytes(n, 1));
  cost_check<R>(meter);
  expect_cost_equals(outcome, meter);
}

template <class R>
void expect_flips_abort() {
  const Words x = random_words(16, R::k);
  expect_every_flip_aborts<R>([&](Session<R>& session) {
    WordShares<R> a(16), b(16), c(16);
    BitShares<R> bits(16), product(16);
    for (int owner : {0, 1}) {
      const bool mine = owner == session.rank;
      input<R>(session, owner, mine ? std::span<const u64>(x) : std::span<const u64>(),
               owner == 0 ? a : b);
    }
    multiply<R>(session, a, b, a);
    square<R>(session, a, a);
    multiply_matrices<R>(session, a, b, {4, 4, 4}, 1, c);
    multiply_matrices<R>(session, c.part(0, 2), b, {1, 2, 8}, 1, a.part(0, 8));
    WordShares<R> wide(64), products(64);
    for (i64 i = 0; i < 4; ++i) multiply<R>(session, a, b, wide.part(16 * i, 16));
    multiply_matrices<R>(session, wide, wide, {8, 8, 8}, 1, products);
    subtract(products.part(0, 16), c, a);
    to_bits(a, bits);
    and_bits<R>(session, bits, bits, product);
    bits_to_ring<R>(session, product, a);
    Words result(16);
    reveal<R>(session, a, R::k, kBothParties, result);
  });
}

TEST(Spdz2kTampering, ProductsAndBits) {
  expect_flips_abort<Ring32>();
  expect_flips_abort<Ring64>();
}

}  // namespace
}  // namespace privml::spdz2k::testing
