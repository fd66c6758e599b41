// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/triple.h"

#include "spdz2k/preprocessing_testing.h"

namespace privml::spdz2k::testing {
namespace {

template <class R>
class TripleTest : public ::testing::Test {};
using Rings = ::testing::Types<Ring8, Ring32, Ring64>;
TYPED_TEST_SUITE(TripleTest, Rings);

template <class R>
struct Triples {
  Both<WordShares<R>> a, b, c;
  explicit Triples(i64 n) {
    for (int rank : {0, 1}) {
      for (auto* shares : {&a, &b, &c}) (*shares)[rank].resize(n);
    }
  }
  void generate(Authentication<R>& authentication) {
    const int rank = authentication.session().rank;
    generate_triples<R>(authentication, a[rank], b[rank], c[rank]);
  }
  // Whether all products are right; EXPECTs the MACs.
  bool hold() const {
    const Words x = reconstruct<R>(a, R::k), y = reconstruct<R>(b, R::k),
                z = reconstruct<R>(c, R::k);
    for (size_t i = 0; i < x.size(); ++i) {
      if (low_bits(x[i] * y[i], R::k) != z[i]) return false;
    }
    return true;
  }
};

TYPED_TEST(TripleTest, ProductsAndCostsHold) {
  using R = TypeParam;
  for (const std::string provider : {"softspoken", "ideal"}) {
    for (const i64 n : {i64{1}, i64{77}, kTripleBatch + 5}) {
      const OtConfig config = malicious_config(provider);
      Triples<R> triples(n);
      const auto record = run_generator<R>(
          config, [&](Authentication<R>& authentication) { triples.generate(authentication); });
      EXPECT_TRUE(triples.hold());
      expect_generator_cost<R>(config, record,
                               [&](privml::CostMeter& meter) { cost_triples<R>(meter, n); });
    }
  }
}

// Every value of a and b comes up, about as often as it should.
TEST(TripleDistribution, FactorsAreUniform) {
  using R = Ring8;
  constexpr i64 n = 1 << 14;
  Triples<R> triples(n);
  run_generator<R>(malicious_config("ideal"),
                   [&](Authentication<R>& authentication) { triples.generate(authentication); });
  for (const auto* shares : {&triples.a, &triples.b}) {
    for (const auto& part : {reconstruct<R>(*shares, R::k),
                             Words((*shares)[0].value.begin(), (*shares)[0].value.end())}) {
      std::array<int, 256> counts{};
      for (const u64 value : part) ++counts[value & 255];
      for (const int count : counts) {
        EXPECT_GT(count, 24);  // expected 64, deviation 8
        EXPECT_LT(count, 104);
      }
    }
  }
}

// The header's formula for k = 64 and 32, per triple in full batches, and the published protocol's.
template <class R>
void expect_bytes(i64 formula) {
  privml::CostMeter meter(rcot_cost(malicious_config("ideal")));
  cost_triples<R>(meter, kTripleBatch);
  i64 bits = R::k + 3 * R::s;
  for (int h = 0; h < R::k; ++h) bits += R::k + R::s - h;
  for (int h = 0; h < R::k + R::s; ++h) bits += R::k + R::s - h;
  bits += (R::k + R::s) * kPoolShape<R>.digits + 2 * (R::k + 2 * R::s) * kPoolShape<R>.digits;
  for (int d = 0; d < R::s / 4; ++d) bits += 5 * (R::k + 2 * R::s - 4 * d);
  EXPECT_EQ((bits + 7) / 8, formula);
  // What comes once per batch: masks of checks, coins, commitments.
  EXPECT_LE(meter.bytes[0], (formula + 3) * kTripleBatch);
  EXPECT_GE(meter.bytes[0], (formula - 1) * kTripleBatch);
  privml::CostMeter with_transfers(rcot_cost(malicious_config()));
  cost_triples<R>(with_transfers, 16 * kTripleBatch);
  EXPECT_LE(8 * with_transfers.bytes[0], 16 * kTripleBatch * kPublishedTripleBits<R>);
}

TEST(TripleCost, Formula) {
  expect_bytes<Ring64>(4736);
  expect_bytes<Ring32>(1200);
}

TEST(TripleAttack, FlippedBits) {
  using R = Ring64;
  Triples<R> triples(3);
  expect_flips_do_no_harm<R>(
      [&](Authentication<R>& authentication) {
        triples.generate(authentication);
        authentication.session().toss();  // opens the last commitment
      },
      [&] { return triples.hold(); }, 12);
}

}  // namespace
}  // namespace privml::spdz2k::testing
