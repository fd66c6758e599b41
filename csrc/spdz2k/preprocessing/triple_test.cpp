// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/preprocessing/triple.h"

#include "spdz2k/preprocessing/triple_batch.h"
#include "spdz2k/testing/preprocessing.h"

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
      const ot::OtConfig config = malicious_config(provider);
      Triples<R> triples(n);
      const auto record = run_generator<R>(
          config, [&](Authentication<R>& authentication) { triples.generate(authentication); });
      EXPECT_TRUE(triples.hold());
      expect_generator_cost<R>(config, record,
                               [&](ot::CostMeter& meter) { cost_triples<R>(meter, n); });
    }
  }
}

TEST(TripleDistribution, FactorsAreUniform) {
  using R = Ring8;
  Triples<R> triples(1 << 14);
  run_generator<R>(malicious_config("ideal"),
                   [&](Authentication<R>& authentication) { triples.generate(authentication); });
  expect_uniform(triples.a);
  expect_uniform(triples.b);
}

// The header's formula for k = 64 and 32, per triple in full batches, and the published protocol's.
template <class R>
void expect_bytes(i64 formula) {
  ot::CostMeter meter(ot::rcot_cost(malicious_config("ideal")));
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
  ot::CostMeter with_transfers(ot::rcot_cost(malicious_config()));
  cost_triples<R>(with_transfers, 16 * kTripleBatch);
  EXPECT_LE(8 * with_transfers.bytes[0], 16 * kTripleBatch * kPublishedTripleBits<R>);
}

TEST(TripleCost, Formula) {
  expect_bytes<Ring64>(4736);
  expect_bytes<Ring32>(1200);
}

// What a dishonest party does between the steps of a batch of four triples.
template <class R>
struct Deviation {
  using Step = std::function<void(TripleBatch<R>&)>;
  Step before_factors, before_rest, before_sacrifice;
};

TEST(TripleAttack, DishonestPartiesAreCaught) {
  using R = Ring64;
  using Batch = TripleBatch<R>;
  const u128 half = u128{1} << (R::k - 1), above = u128{1} << R::k;
  const std::map<std::string, Deviation<R>> attacks{
      {"another a than the transfers had", {[](Batch& x) { ++x.received.factor[0]; }, {}, {}}},
      {"half the modulus more in a", {[=](Batch& x) { x.received.factor[1] += half; }, {}, {}}},
      {"another b than the transfers had", {[](Batch& x) { x.b[0] += 2; }, {}, {}}},
      {"another b after it was hidden", {{}, [=](Batch& x) { x.b[3] += half; }, {}}},
      {"a wrong product", {{}, [](Batch& x) { ++x.c[0]; }, {}}},
      {"a product wrong in its highest bit", {{}, [=](Batch& x) { x.c[1] += half; }, {}}},
      {"a product wrong above its value", {{}, [=](Batch& x) { x.c[1] += above; }, {}}},
      {"a wrong product, and its mask mended by a guess",
       {{}, [](Batch& x) { ++x.c[2], x.mask_c[2] += 999; }, {}}},
      {"a wrong share", {{}, {}, [](Batch& x) { x.words[3] += 1; }}},
      {"a wrong MAC", {{}, {}, [](Batch& x) { x.macs[9] += 1; }}},
  };
  const auto ending = [](int dishonest, const Deviation<R>& deviation, Triples<R>& triples) {
    const auto run =
        ot::testing::run_tampered(malicious_config("ideal"), dishonest, {},
                                  with_authentication<R>([&](Authentication<R>& authentication) {
                                    const int rank = authentication.session().rank;
                                    const auto step = [&](const auto& hook, Batch& batch) {
                                      if (hook && rank == dishonest) hook(batch);
                                    };
                                    Batch batch(authentication, 4);
                                    batch.multiply();
                                    step(deviation.before_factors, batch);
                                    batch.authenticate_factors();
                                    step(deviation.before_rest, batch);
                                    const crypto::Block seed = batch.authenticate_rest();
                                    step(deviation.before_sacrifice, batch);
                                    batch.sacrifice(seed);
                                    batch.write(triples.a[rank], triples.b[rank], triples.c[rank]);
                                  }));
    return run.ending[1 - dishonest];
  };
  for (const int dishonest : {0, 1}) {
    Triples<R> triples(4);
    EXPECT_EQ(ending(dishonest, {}, triples), ot::testing::Ending::completed);
    EXPECT_TRUE(triples.hold());
    for (const auto& [name, deviation] : attacks) {
      SCOPED_TRACE(name);
      EXPECT_EQ(ending(dishonest, deviation, triples), ot::testing::Ending::aborted);
    }
  }
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
