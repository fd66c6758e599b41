// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/preprocessing/matrix_triple.h"

#include "spdz2k/preprocessing/matrix_batch.h"
#include "spdz2k/preprocessing/triple.h"
#include "spdz2k/shares/chunks.h"
#include "spdz2k/testing/preprocessing.h"

namespace privml::spdz2k::testing {
namespace {

template <class R>
class MatrixTripleTest : public ::testing::Test {};
using Rings = ::testing::Types<Ring8, Ring32, Ring64>;
TYPED_TEST_SUITE(MatrixTripleTest, Rings);

template <class R>
struct MatrixTriples {
  MatrixShape shape;
  i64 n;
  Both<WordShares<R>> a, b, c;

  MatrixTriples(const MatrixShape& of, i64 count) : shape(of), n(count) {
    for (int rank : {0, 1}) {
      a[rank].resize(n * shape.rows * shape.inner);
      b[rank].resize(n * shape.inner * shape.columns);
      c[rank].resize(n * shape.rows * shape.columns);
    }
  }
  void generate(Authentication<R>& authentication) {
    const int rank = authentication.session().rank;
    generate_matrix_triples<R>(authentication, shape, n, a[rank], b[rank], c[rank]);
  }
  // Whether all products are right; EXPECTs the MACs.
  bool hold() const {
    const auto [rows, inner, columns] = shape;
    const Words x = reconstruct<R>(a, R::k), y = reconstruct<R>(b, R::k),
                z = reconstruct<R>(c, R::k);
    for (i64 i = 0; i < n * rows; ++i) {
      for (i64 l = 0; l < columns; ++l) {
        u64 sum = 0;
        for (i64 j = 0; j < inner; ++j) {
          sum += x[i * inner + j] * y[(i / rows * inner + j) * columns + l];
        }
        if (low_bits(sum, R::k) != z[i * columns + l]) return false;
      }
    }
    return true;
  }
};

TYPED_TEST(MatrixTripleTest, ProductsAndCostsHold) {
  using R = TypeParam;
  struct Case {
    MatrixShape shape;
    i64 n;
  };
  // More keys than trees held at once, more lines than are multiplied by the pool at once.
  for (const auto& [shape, n] :
       {Case{{1, 1, 1}, 1}, Case{{3, 5, 2}, 3}, Case{{20, 14, 1}, 1}, Case{{1, 3, 2100}, 2}}) {
    for (const std::string provider : {"softspoken", "ideal"}) {
      if (provider == "softspoken" && shape.columns > 1000) continue;
      const ot::OtConfig config = malicious_config(provider);
      MatrixTriples<R> triples(shape, n);
      const auto record = run_generator<R>(
          config, [&](Authentication<R>& authentication) { triples.generate(authentication); });
      EXPECT_TRUE(triples.hold());
      expect_generator_cost<R>(
          config, record, [&](ot::CostMeter& meter) { cost_matrix_triples<R>(meter, shape, n); });
    }
  }
}

TEST(MatrixTripleWireTrace, SoftSpoken) {
  MatrixTriples<Ring64> triples({2, 3, 4}, 2);
  const auto record = run_generator<Ring64>(
      malicious_config(),
      [&](Authentication<Ring64>& authentication) { triples.generate(authentication); });
  EXPECT_EQ(record.sent_hash[0].substr(0, 8) + record.sent_hash[1].substr(0, 8),
            "28b21648e733e76d");
}

TEST(MatrixTripleDistribution, FactorsAreUniform) {
  using R = Ring8;
  MatrixTriples<R> triples({8, 64, 8}, 32);
  run_generator<R>(malicious_config("ideal"),
                   [&](Authentication<R>& authentication) { triples.generate(authentication); });
  EXPECT_TRUE(triples.hold());
  expect_uniform(triples.a);
  expect_uniform(triples.b);
}

// The header's formula in bits, transfers not counted; and what single products would cost.
template <class R>
void expect_bytes(const MatrixShape& shape, int times_less) {
  const auto [rows, inner, columns] = shape;
  ot::CostMeter meter(ot::rcot_cost(malicious_config("ideal"))), single = meter;
  cost_matrix_triples<R>(meter, shape, 1);
  i64 product = 0, mac = 0;
  for (int d = 0; d < R::k / 4; ++d) product += R::k + R::s - 4 * d;
  for (int d = 0; d < R::s / 4; ++d) mac += R::k + 2 * R::s - 4 * d;
  const i64 wide = R::k + 2 * R::s, trees = (1 + 8 * 32 + 8 * 64 / 4) * R::k;
  const i64 in_b = inner * (columns + 1), in_c = rows * (columns + 1);
  const i64 bits = rows * in_b * product + rows * inner * (trees + mac) + (in_b + in_c) * mac +
                   in_b * wide * kPoolShape<R>.digits + inner * wide + rows * R::s;
  EXPECT_GE(meter.bytes[0], bits / 8);
  EXPECT_LE(meter.bytes[0], bits / 8 * 102 / 100);  // masks of checks, coins, commitments
  cost_triples<R>(single, rows * inner * columns);
  EXPECT_LT(meter.bytes[0] * times_less, single.bytes[0]);
}

TEST(MatrixTripleCost, Formula) {
  expect_bytes<Ring64>({16, 150, 100}, 15);  // the second convolution of a LeNet
  expect_bytes<Ring64>({1, 400, 120}, 4);    // its first linear layer
  expect_bytes<Ring32>({16, 150, 100}, 14);
}

// What a dishonest party does between the steps of a batch of one triple, {2, 3, 4}.
template <class R>
struct Deviation {
  using Step = std::function<void(MatrixBatch<R>&)>;
  Step before_last_key, before_authentication, before_rest, before_sacrifice;
};

template <class R>
void run_deviating(MatrixBatch<R>& batch, const Deviation<R>& deviation) {
  const auto step = [&](const auto& hook) {
    if (hook) hook(batch);
  };
  const MatrixLayout& at = batch.at;
  batch.draw_factors();
  batch.multiply_keys(0, at.factors - 1);
  step(deviation.before_last_key);
  batch.multiply_keys(at.factors - 1, 1);
  step(deviation.before_authentication);
  batch.authenticate_lines(0, at.lines);
  batch.add_own_products();
  step(deviation.before_rest);
  const crypto::Block seed = batch.authenticate_rest();
  step(deviation.before_sacrifice);
  batch.sacrifice(seed);
}

// How the honest party's run ends; what both got is in `triples`.
template <class R>
ot::testing::Ending ending_against(int dishonest, const Deviation<R>& deviation,
                                   MatrixTriples<R>& triples, crypto::Block seed) {
  ot::OtConfig config = malicious_config("ideal");
  config.test_seed = seed;
  const auto run = ot::testing::run_tampered(
      config, dishonest, {}, with_authentication<R>([&](Authentication<R>& authentication) {
        MatrixBatch<R> batch(authentication, triples.shape, 1);
        const int rank = authentication.session().rank;
        run_deviating<R>(batch, rank == dishonest ? deviation : Deviation<R>{});
        batch.write(triples.a[rank], triples.b[rank], triples.c[rank]);
      }));
  return run.ending[1 - dishonest];
}

template <class R>
void expect_deviations_are_caught() {
  using Word = typename R::Word;
  using Batch = MatrixBatch<R>;
  const Word half = Word{1} << (R::k - 1), above = Word{1} << R::k;
  const std::map<std::string, Deviation<R>> attacks{
      {"another line for the last of its keys",
       {[](Batch& batch) { ++batch.b.back(); }, {}, {}, {}}},
      {"another line for the keys than is authenticated",
       {{}, [](Batch& batch) { batch.b[0] += 2; }, {}, {}}},
      {"half the modulus more in a line", {{}, [=](Batch& b) { b.b[1] += half; }, {}, {}}},
      {"another factor than the trees had", {{}, {}, [](Batch& batch) { ++batch.a[0]; }, {}}},
      {"half the modulus more in a factor", {{}, {}, [=](Batch& b) { b.a[5] += half; }, {}}},
      {"a wrong product", {{}, {}, [](Batch& batch) { ++batch.c[1]; }, {}}},
      {"a product wrong in its highest bit", {{}, {}, [=](Batch& b) { b.c[2] += half; }, {}}},
      {"a product wrong above its value", {{}, {}, [=](Batch& b) { b.c[2] += above; }, {}}},
      {"a wrong product, and its mask mended by a guess",
       {{}, {}, [](Batch& batch) { ++batch.c[0], batch.c[4] += 12345; }, {}}},
      {"a wrong share of a factor", {{}, {}, {}, [](Batch& b) { b.words_ac[0] += 1; }}},
      {"a wrong MAC of a line", {{}, {}, {}, [](Batch& b) { b.macs_b[0] += 1; }}},
      {"a wrong MAC of a mask", {{}, {}, {}, [](Batch& b) { b.macs_b[4] += 1; }}},
      {"a wrong opening of a mask", {{}, {}, {}, [](Batch& b) { b.words_b[4] += 1; }}},
      {"a wrong MAC of a product", {{}, {}, {}, [](Batch& b) { b.macs_ac.back() += 1; }}},
  };
  for (int dishonest : {0, 1}) {
    MatrixTriples<R> triples({2, 3, 4}, 1);
    EXPECT_EQ(ending_against<R>(dishonest, {}, triples, {1, 2}), ot::testing::Ending::completed);
    EXPECT_TRUE(triples.hold());
    for (const auto& [name, deviation] : attacks) {
      SCOPED_TRACE(name);
      EXPECT_EQ(ending_against<R>(dishonest, deviation, triples, {1, 2}),
                ot::testing::Ending::aborted);
    }
  }
}

TEST(MatrixTripleAttack, DeviationsIn32Bits) { expect_deviations_are_caught<Ring32>(); }
TEST(MatrixTripleAttack, DeviationsIn64Bits) { expect_deviations_are_caught<Ring64>(); }

// An error in the highest bit of a line shows in the sacrifice only if the key's lowest bit and
// the weight are odd. If the check passes, that reveals something about the key and nothing
// about the factor.
TEST(MatrixTripleAttack, SelectiveFailureTellsNothingOfTheFactors) {
  using R = Ring8;
  const u16 top = 1 << 15;
  int passed = 0, odd_keys = 0, odd_factors = 0;
  for (u64 attempt = 0; attempt < 500; ++attempt) {
    MatrixTriples<R> triples({1, 1, 1}, 1);
    int odd_key = 0;
    ot::OtConfig config = malicious_config("ideal");
    config.test_seed = crypto::Block{attempt, 77};
    const auto run = ot::testing::run_tampered(
        config, 1, {}, with_authentication<R>([&](Authentication<R>& authentication) {
          MatrixBatch<R> batch(authentication, triples.shape, 1);
          const int rank = authentication.session().rank;
          batch.draw_factors();
          if (rank == 0) odd_key = batch.a[0] & 1;
          if (rank == 1) batch.b[0] ^= top;
          batch.multiply_keys(0, 1);
          if (rank == 1) batch.b[0] ^= top;
          batch.authenticate_lines(0, 1);
          batch.add_own_products();
          batch.sacrifice(batch.authenticate_rest());
          batch.write(triples.a[rank], triples.b[rank], triples.c[rank]);
        }));
    if (run.detected()) continue;
    ASSERT_TRUE(triples.hold());
    ++passed;
    odd_keys += odd_key;
    odd_factors += triples.a[0].value[0] & 1;
  }
  EXPECT_GT(passed, 325);  // of 500 three quarters
  EXPECT_LT(passed, 425);
  EXPECT_LT(odd_keys * 100, passed * 43);  // a third: the attack works
  EXPECT_GT(odd_factors * 100, passed * 41);
  EXPECT_LT(odd_factors * 100, passed * 59);
}

TEST(MatrixTripleAttack, FlippedBits) {
  using R = Ring64;
  MatrixTriples<R> triples({1, 2, 3}, 1);
  expect_flips_do_no_harm<R>(
      [&](Authentication<R>& authentication) {
        triples.generate(authentication);
        authentication.session().toss();  // opens the last commitment
      },
      [&] { return triples.hold(); }, 6);
}

}  // namespace
}  // namespace privml::spdz2k::testing
