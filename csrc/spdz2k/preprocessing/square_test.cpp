// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/preprocessing/square.h"

#include "spdz2k/preprocessing/masks.h"
#include "spdz2k/preprocessing/random_bit.h"
#include "spdz2k/shares/check.h"
#include "spdz2k/shares/open.h"
#include "spdz2k/testing/preprocessing.h"

namespace privml::spdz2k::testing {
namespace {

template <class R>
class SquareTest : public ::testing::Test {};
using Rings = ::testing::Types<Ring8, Ring32, Ring64>;
TYPED_TEST_SUITE(SquareTest, Rings);

template <class R>
struct Squares {
  Both<WordShares<R>> a, square;
  explicit Squares(i64 n) {
    for (int rank : {0, 1}) {
      a[rank].resize(n);
      square[rank].resize(n);
    }
  }
  void generate(Authentication<R>& authentication) {
    const int rank = authentication.session().rank;
    generate_squares<R>(authentication, a[rank], square[rank]);
  }
  bool hold() const {
    const Words x = reconstruct<R>(a, R::k), y = reconstruct<R>(square, R::k);
    for (size_t i = 0; i < x.size(); ++i) {
      if (low_bits(x[i] * x[i], R::k) != y[i]) return false;
    }
    return true;
  }
};

TYPED_TEST(SquareTest, SquaresAndCostsHold) {
  using R = TypeParam;
  for (const i64 n : {i64{1}, i64{2}, i64{77}, kSquareBatch + 3}) {
    const ot::OtConfig config = malicious_config();
    Squares<R> squares(n);
    const auto record = run_generator<R>(
        config, [&](Authentication<R>& authentication) { squares.generate(authentication); });
    EXPECT_TRUE(squares.hold());
    expect_generator_cost<R>(config, record,
                             [&](ot::CostMeter& meter) { cost_squares<R>(meter, n); });
  }
}

TEST(SquareDistribution, RootsAreUniform) {
  using R = Ring8;
  Squares<R> squares(1 << 14);
  run_generator<R>(malicious_config("ideal"),
                   [&](Authentication<R>& authentication) { squares.generate(authentication); });
  expect_uniform(squares.a);
}

TEST(SquareAttack, FlippedBits) {
  using R = Ring64;
  Squares<R> squares(3);
  expect_flips_do_no_harm<R>(
      [&](Authentication<R>& authentication) {
        squares.generate(authentication);
        authentication.session().toss();  // opens the last commitment
      },
      [&] { return squares.hold(); }, 12);
}

TYPED_TEST(SquareTest, MasksAndRandomsHold) {
  using R = TypeParam;
  constexpr i64 n = kMaskBatch + 3;
  const ot::OtConfig config = malicious_config();
  Both<WordShares<R>> masks{WordShares<R>(n), WordShares<R>(n)}, randoms = masks;
  WipedVector<u64> clear(n);
  const auto record = run_generator<R>(config, [&](Authentication<R>& authentication) {
    const int rank = authentication.session().rank;
    generate_masks<R>(authentication, 1, masks[rank],
                      rank == 1 ? std::span<u64>(clear) : std::span<u64>());
    generate_randoms<R>(authentication, randoms[rank]);
  });
  EXPECT_EQ(reconstruct<R>(masks, R::k), Words(clear.begin(), clear.end()));
  const Words values = reconstruct<R>(randoms, R::k);
  EXPECT_NE(values[0], values[1]);
  expect_generator_cost<R>(config, record, [&](ot::CostMeter& meter) {
    cost_masks<R>(meter, 1, n);
    cost_randoms<R>(meter, n);
  });
}

// Whatever is squared the result is a bit, and every opened value goes with as many zeros as ones.
TEST(RandomBit, ExhaustiveSmallRings) {
  for (int k = 1; k <= 12; ++k) {
    std::map<u64, std::array<int, 2>> counts;
    for (u64 u = 0; u < u64{1} << k; ++u) {
      const u64 w = (u * u + u) & low_mask(k);
      const u64 inverse = static_cast<u64>(inverse_root(w, k));
      const u64 bit = (inverse * u + (inverse + 1) / 2) & low_mask(k);
      ASSERT_LE(bit, 1u) << "k = " << k << ", u = " << u;
      ++counts[w][bit];
    }
    for (const auto& [w, count] : counts) EXPECT_EQ(count[0], count[1]) << "k = " << k;
  }
}

TEST(RandomBit, InverseRootsOfLargeRings) {
  for (const int k : {31, 32, 63, 64}) {
    for (const u64 u : random_words(1000, k)) {
      const u64 w = (u * u + u) & low_mask(k);
      const u128 e = (u128{w} << 2) + 1, y = inverse_root(w, k);
      EXPECT_TRUE(low_bits(e * y * y - 1, k + 1) == 0);
      const u64 bit = (static_cast<u64>(y) * u + static_cast<u64>((y + 1) / 2)) & low_mask(k);
      EXPECT_LE(bit, 1u);
    }
  }
}

TYPED_TEST(SquareTest, BitsFromEverySquare) {
  using R = TypeParam;
  const Words u = R::k == 8 ? all_words(8) : random_words(3000, R::k);
  Words squared(u.size());
  for (size_t i = 0; i < u.size(); ++i) squared[i] = u[i] * u[i];
  const auto roots = share<R>(u, 3), squares = share<R>(squared, 4);
  const i64 n = std::ssize(u);
  Both<WordShares<R>> bits{WordShares<R>(n), WordShares<R>(n)};
  const Outcome outcome = run_parties<R>([&](Session<R>& session) {
    bits_from_squares<R>(session, roots[session.rank], squares[session.rank], bits[session.rank]);
    check(session);
  });
  i64 ones = 0;
  for (const u64 bit : reconstruct<R>(bits, R::k)) {
    ASSERT_LE(bit, 1u);
    ones += static_cast<i64>(bit);
  }
  EXPECT_GT(ones, n / 3);
  EXPECT_LT(ones, n - n / 3);
  CostMeter meter;
  cost_bits_from_squares<R>(meter, n);
  cost_check<R>(meter);
  expect_cost_equals(outcome, meter);
}

TYPED_TEST(SquareTest, GeneratedBits) {
  using R = TypeParam;
  constexpr i64 n = 200;
  Both<WordShares<R>> bits{WordShares<R>(n), WordShares<R>(n)};
  run_generator<R>(malicious_config(), [&](Authentication<R>& authentication) {
    generate_bits<R>(authentication, bits[authentication.session().rank]);
  });
  i64 ones = 0;
  for (const u64 bit : reconstruct<R>(bits, R::k)) {
    ASSERT_LE(bit, 1u);
    ones += static_cast<i64>(bit);
  }
  EXPECT_GT(ones, 50);
  EXPECT_LT(ones, 150);
}

}  // namespace
}  // namespace privml::spdz2k::testing
