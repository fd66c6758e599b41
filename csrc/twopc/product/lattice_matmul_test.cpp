// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/lattice_matmul.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "twopc/product/ciphertext_product.h"
#include "twopc/product/dense.h"
#include "twopc/product/last_bit.h"
#include "twopc/testing/parties.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;
using lattice::Noise;

Both<Words> placed(const Words& values, const Operand& format, u64 seed) {
  if (format.owner == kShared) return share(values, format.bits, seed);
  Both<Words> words;
  words[format.owner] = values;
  return words;
}

Words meaning(const Words& values, const Operand& format, int ell) {
  return ring_elements(values, {format.bits, format.is_signed}, ell);
}

OwnedWeights owned(Operand format, const Words& words, const MatrixShape& shape) {
  return {format, words, fingerprint(format, words, shape.inner, shape.columns)};
}

Words expected_product(const Words& x, Operand fx, const Words& y, Operand fy,
                       const MatrixShape& shape, int ell) {
  Words expected(shape.rows * shape.columns);
  add_product(meaning(x, fx, ell), meaning(y, fy, ell), shape, ell, expected);
  return expected;
}

void expect_direct(Operand fx, Operand fy, const MatrixShape& shape, int ell,
                   lattice::Noise noise = lattice::Noise::tail, const OtKind& ot = {}) {
  const Words x = random_words(shape.rows * shape.inner, fx.bits, 1);
  const Words y = random_words(shape.inner * shape.columns, fy.bits, 2);
  const Both<Words> xs = placed(x, fx, 3), ys = placed(y, fy, 4);
  Both<Words> out;
  const Outcome outcome = run_parties(ot, [&](ot::Party& party) {
    const int r = party.rank;
    out[r].resize(shape.rows * shape.columns);
    lattice_matmul(party, fx, xs[r], fy, ys[r], shape, ell, out[r], {noise, 3 - r});
  });
  ASSERT_EQ(reconstruct(out, ell), expected_product(x, fx, y, fy, shape, ell));
  expect_cost_equals(outcome,
                     [&](ot::CostMeter& m) { cost_lattice_matmul(m, fx, fy, shape, ell, noise); });
}

TEST(LatticeMatmul, EveryPlacementAndSide) {
  for (const int ell : {8, 32, 44, 54})
    for (const int owner : {0, 1})
      for (const int other : {kShared, 1 - owner}) {
        const Operand weights{owner, 7, owner == 0};
        const Operand rest{other, other == kShared ? ell : ell - 2, true};
        expect_direct(rest, weights, {3, 5, 4}, ell);
        if (other == kShared) expect_direct(weights, rest, {3, 5, 4}, ell);
      }
}

TEST(LatticeMatmul, ShapesOfManyKinds) {
  for (const MatrixShape& shape :
       {MatrixShape{1, 1, 1}, {1, 130, 2}, {130, 1, 1}, {2, 3, 129}, {64, 64, 5}})
    expect_direct({kShared, 37}, {0, 12, true}, shape, 37);
}

// The widest weights that parameters serve at each width, beside which noise has the least room.
TEST(LatticeMatmul, ExactWithTheWidestWeightsOfEveryWidth) {
  for (const int ell : {1, 20, 32, 41, 44, 49, 54}) {
    int bits = 31;
    while (bits > 0 && !lattice_choice(200, {1, bits, true}, ell)) --bits;
    EXPECT_GE(bits, 3) << ell;
    bits = std::min(bits, ell);
    expect_direct({kShared, ell}, {1, bits, true}, {30, 200, 3}, ell);
  }
}

TEST(LatticeMatmul, RowsBeyondOnePolynomial) {
  expect_direct({kShared, 32}, {1, 8, true}, {4097, 2, 2}, 32);
  expect_direct({1, 8, true}, {kShared, 32}, {2, 2, 4100}, 32);
}

TEST(LatticeMatmul, ProvedNoiseAndOtherTransfers) {
  expect_direct({kShared, 44}, {0, 12, true}, {5, 9, 3}, 44, lattice::Noise::proved);
  expect_direct({kShared, 44}, {0, 16, true}, {5, 9, 3}, 44, lattice::Noise::tail, {false, 4});
}

TEST(LatticeMatmul, RefusesWhatNoParametersServe) {
  EXPECT_FALSE(lattice_choice(768, {0, 12, true}, 56));
  EXPECT_FALSE(lattice_choice(768, {0, 40, true}, 44));
  EXPECT_FALSE(lattice_choice(0, {0, 12, true}, 44));
  Words x(6), y(6), out(4);
  run_parties({}, [&](ot::Party& party) {
    const auto direct = [&](Operand fx, Operand fy, int ell) {
      lattice_matmul(party, fx, x, fy, party.rank == 0 ? Words(6) : Words(), {2, 3, 2}, ell, out);
    };
    EXPECT_THROW(direct({kShared, 60}, {0, 12, true}, 60), InvalidArgument);
    EXPECT_THROW(direct({kShared, 32}, {kShared, 32, true}, 32), InvalidArgument);
    EXPECT_THROW(direct({0, 32}, {0, 8, true}, 32), InvalidArgument);
    EXPECT_THROW(direct({kShared, 31}, {0, 8, true}, 32), InvalidArgument);
    EXPECT_EQ(party.channel.traffic().sent, 0);  // before anything is sent
  });
}

TEST(PreparedMatmul, QueriesUseRowsUpAndCostOneMessage) {
  for (const int owner : {0, 1})
    for (const int x_owner : {kShared, 1 - owner}) {
      const int ell = 44;
      const Operand fw{owner, 12, true};
      const Operand fx{x_owner, x_owner == kShared ? ell : 20, true};
      const MatrixShape all{12, 6, 5}, query{4, 6, 5};
      const Words w = random_words(all.inner * all.columns, fw.bits, 2);
      Both<std::vector<Words>> out;
      std::vector<Words> x;
      std::vector<Both<Words>> xs;
      for (u64 i = 0; i < 3; ++i) {
        x.push_back(random_words(query.rows * query.inner, fx.bits, 10 + i));
        xs.push_back(placed(x.back(), fx, 20 + i));
      }
      const Outcome outcome = run_parties({}, [&](ot::Party& party) {
        const int r = party.rank;
        const Words mine = r == owner ? w : Words{};
        const OwnedWeights weights = owned(fw, mine, all);
        ProductHalves halves = matmul_halves(weights, all.inner, all.columns, ell);
        PreparedProduct prepared = prepare_matmul(party, halves, weights, all.rows);
        for (int i = 0; i < 3; ++i) {
          EXPECT_EQ(prepared.shape.rows, 12 - 4 * i);
          out[r].emplace_back(query.rows * query.columns);
          prepared_matmul(party, take_rows(prepared, 4), fx, xs[i][r], weights, out[r].back());
        }
        EXPECT_EQ(prepared.shape.rows, 0);
        EXPECT_THROW(take_rows(prepared, 1), InvalidArgument);
      });
      for (int i = 0; i < 3; ++i)
        EXPECT_EQ(reconstruct({out[0][i], out[1][i]}, ell),
                  expected_product(x[i], fx, w, fw, query, ell));
      expect_cost_equals(outcome, [&](ot::CostMeter& meter) {
        cost_prepare_matmul(meter, matmul_halves({fw}, 6, 5, ell).product, 12, 0);
        for (int i = 0; i < 3; ++i) cost_prepared_matmul(meter, owner, 4, 6, ell);
      });
    }
}

TEST(PreparedMatmul, MasksAreUniformAndFresh) {
  // What the client sends for x = 0 is -r: two queries' messages differ, and no bit is constant.
  const Operand fw{0, 8, true};
  const MatrixShape all{256, 4, 1};
  Both<PreparedProduct> halves;
  run_parties({}, [&](ot::Party& party) {
    const int r = party.rank;
    const Words mine = r == 0 ? Words(4, 1) : Words{};
    ProductHalves source = matmul_halves(owned(fw, mine, all), 4, 1, 32);
    halves[r] = prepare_matmul(party, source, owned(fw, mine, all), all.rows);
  });
  ASSERT_EQ(halves[1].row_seeds.size(), 256U);
  for (size_t i = 0; i < 256; ++i)
    for (size_t j = 0; j < i; ++j) ASSERT_FALSE(halves[1].row_seeds[i] == halves[1].row_seeds[j]);
  u64 any = 0, every = ~u64{0};
  for (const u64 word : halves[0].share) {
    any |= word;
    every &= word;
  }
  EXPECT_EQ(any, low_mask(32));
  EXPECT_EQ(every, 0U);
}

TEST(PreparedMatmul, ChangedWeightsAndWrongHalvesAreRefused) {
  const Operand fw{0, 8, true};
  const MatrixShape shape{2, 3, 2};
  run_parties({}, [&](ot::Party& party) {
    const bool owns = party.rank == 0;
    const Words w = owns ? Words(6, 1) : Words{}, changed = owns ? Words(6, 2) : Words{};
    ProductHalves halves = matmul_halves(owned(fw, w, shape), 3, 2, 32);
    PreparedProduct prepared = prepare_matmul(party, halves, owned(fw, w, shape), 2);
    const Words x(6);
    Words out(4);
    if (owns) {
      EXPECT_THROW(prepared_matmul(party, take_rows(prepared, 2), {kShared, 32}, x,
                                   owned(fw, changed, shape), out),
                   InvalidArgument);
    } else {
      EXPECT_THROW(prepared_matmul(party, take_rows(prepared, 2), {kShared, 31}, x,
                                   owned(fw, w, shape), out),
                   InvalidArgument);
    }
    EXPECT_EQ(prepared.shape.rows, 0);
  });
}

TEST(CiphertextProduct, PartiesThatDisagreeFindOut) {
  for (const int difference : {0, 1, 2, 3}) {
    run_parties({}, [&](ot::Party& party) {
      const auto choice = *lattice_choice(3, {0, 8, true}, 32);
      std::vector<u8> label{1};
      CiphertextProduct product{0, choice, {2, 3}, 128};
      if (party.rank == 1) {
        if (difference == 0) product.choice.set = lattice::kColumnSets[3];
        if (difference == 1) product.shape.outputs = 3;
        if (difference == 2) label[0] = 2;
        if (difference == 3) product.choice.dropped = 12;
      }
      const bool owns = party.rank == 0;
      Words out(product.shape.outputs * 4);
      ProductHalves halves{product, {}, label};
      EXPECT_THROW(
          ciphertext_product(party, halves, 4, Words(owns ? 6 : 0), Words(owns ? 0 : 12), out),
          ProtocolError);
    });
  }
}

TEST(CiphertextProduct, ReplayedAndCutBatchesAreRefused) {
  for (const int difference : {0, 1}) {
    int refused = 0;
    try {
      run_parties({}, [&](ot::Party& party) {
        const auto choice = *lattice_choice(3, {0, 8, true}, 32);
        ProductHalves halves{{0, choice, {2, 3}, 128}};
        const bool owns = party.rank == 0;
        Words out(8);
        const auto next = [&](i64 columns) {
          ciphertext_product(party, halves, columns, Words(owns ? 6 : 0),
                             Words(owns ? 0 : 3 * columns), std::span(out).first(2 * columns));
        };
        next(4);
        if (difference == 0 && !owns) halves.batches = 1 + 7;  // of another batch
        next(difference == 1 && !owns ? 3 : 4);
      });
    } catch (const ProtocolError&) {
      ++refused;
    } catch (const PeerDisconnected&) {
    }
    EXPECT_EQ(refused, 1) << difference;
  }
}

// Halves serve many batches of one matrix of weights, in whatever way; each batch has its own key.
TEST(ProductHalves, ServeManyProductsAndCostTheirBeginningOnce) {
  const int ell = 44;
  const Operand fw{1, 12, true}, fx{kShared, ell};
  const MatrixShape shape{3, 20, 4};
  const Words w = random_words(80, 12, 1);
  Both<std::vector<Words>> out;
  std::vector<Words> x;
  std::vector<Both<Words>> xs;
  for (u64 i = 0; i < 4; ++i) {
    x.push_back(random_words(60, ell, 10 + i));
    xs.push_back(share(x.back(), ell, 20 + i));
  }
  const Outcome outcome = run_parties({}, [&](ot::Party& party) {
    const int r = party.rank;
    const Words mine = r == 1 ? w : Words{};
    const OwnedWeights weights = owned(fw, mine, shape);
    ProductHalves halves = matmul_halves(weights, 20, 4, ell, std::vector<u8>{7});
    halves.threads = 1 + r;
    for (int i = 0; i < 4; ++i) {
      out[r].emplace_back(12);
      if (i % 2 == 0) {
        lattice_matmul(party, halves, fx, xs[i][r], weights, 3, out[r].back());
      } else {
        prepared_matmul(party, prepare_matmul(party, halves, weights, 3), fx, xs[i][r], weights,
                        out[r].back());
      }
    }
    EXPECT_EQ(halves.batches, 4);
  });
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(reconstruct({out[0][i], out[1][i]}, ell),
              expected_product(x[i], fx, w, fw, shape, ell));
  expect_cost_equals(outcome, [&](ot::CostMeter& meter) {
    const CiphertextProduct product = matmul_halves({fw}, 20, 4, ell).product;
    for (const i64 i : {0, 1, 2, 3}) {
      if (i % 2 == 0) {
        cost_lattice_matmul(meter, product, 3, i);
      } else {
        cost_prepare_matmul(meter, product, 3, i);
        cost_prepared_matmul(meter, 1, 3, 20, ell);
      }
    }
  });
}

// Once halves are there, a batch is one message and the exchange that drops the last bit.
TEST(ProductHalves, ABatchWaitsForNoAnswer) {
  const CiphertextProduct product = matmul_halves({{1, 12, true}}, 20, 4, 44).product;
  const ot::CostMeter none{ot::RcotCost{"ideal", 0, 1, i64{1} << 40}};
  std::array<ot::CostMeter, 2> batches{none, none};
  for (const i64 i : {0, 1}) cost_ciphertext_product(batches[i], product, i, 3);
  EXPECT_EQ(std::ranges::max(batches[0].depth), 3);
  EXPECT_EQ(std::ranges::max(batches[1].depth), 2);
  ot::CostMeter dropped = none;
  cost_drop_last_bit(dropped, 4 * 3, 44);
  EXPECT_EQ(batches[1].bytes[1], dropped.bytes[1]);  // the owner's
  EXPECT_EQ(batches[1].bytes[0], dropped.bytes[0] + batch_bytes(product, 3));
}

TEST(ProductHalves, RefuseOtherWeights) {
  const Operand fw{0, 8, true};
  const MatrixShape shape{2, 3, 2};
  run_parties({}, [&](ot::Party& party) {
    if (party.rank == 1) return;
    const Words w(6, 1), changed(6, 2), x(6);
    Words out(4);
    ProductHalves halves = matmul_halves(owned(fw, w, shape), 3, 2, 32);
    EXPECT_THROW(lattice_matmul(party, halves, {kShared, 32}, x, owned(fw, changed, shape), 2, out),
                 InvalidArgument);
    EXPECT_THROW(prepare_matmul(party, halves, owned(fw, changed, shape), 2), InvalidArgument);
    EXPECT_EQ(party.channel.traffic().sent, 0);
  });
}

// The last batch that they may serve, and the next one, which begins anew.
TEST(ProductHalves, AreMadeAnewWhenTheyAreUsedUp) {
  const Operand fw{0, 8, true};
  const MatrixShape shape{2, 3, 2};
  const Words w = random_words(6, 8, 1), x = random_words(6, 32, 2);
  const Both<Words> xs = share(x, 32);
  Words expected(4);
  add_product(x, ring_elements(w, {8, true}, 32), shape, 32, expected);
  Both<std::vector<Words>> out;
  Both<std::vector<lattice::Digest>> digests;
  const Outcome outcome = run_parties({}, [&](ot::Party& party) {
    const int r = party.rank;
    const Words mine = r == 0 ? w : Words{};
    const OwnedWeights weights = owned(fw, mine, shape);
    ProductHalves halves = matmul_halves(weights, 3, 2, 32);
    for (int i = 0; i < 4; ++i) {
      if (i == 1) halves.batches = lattice::kMostBatches - 1;
      out[r].emplace_back(4);
      lattice_matmul(party, halves, {kShared, 32}, xs[r], weights, 2, out[r].back());
      digests[r].push_back(halves.digest);
    }
    EXPECT_EQ(halves.batches % lattice::kMostBatches, 2);
  });
  for (int i = 0; i < 4; ++i) EXPECT_EQ(reconstruct({out[0][i], out[1][i]}, 32), expected) << i;
  EXPECT_EQ(digests[0], digests[1]);
  EXPECT_EQ(digests[0][0], digests[0][1]);
  EXPECT_NE(digests[0][1], digests[0][2]);
  EXPECT_EQ(digests[0][2], digests[0][3]);
  const CiphertextProduct product = matmul_halves({fw}, 3, 2, 32).product;
  expect_cost_equals(outcome, [&](ot::CostMeter& meter) {
    for (const i64 batch :
         {i64{0}, lattice::kMostBatches - 1, lattice::kMostBatches, lattice::kMostBatches + 1})
      cost_lattice_matmul(meter, product, 2, batch);
  });
}

TEST(PreparedProduct, HalvesSurviveAStore) {
  const Operand fw{1, 8, true};
  const Words w = random_words(15, 8, 1), x = random_words(20, 33, 2);
  const Both<Words> xs = share(x, 33);
  Both<Words> out;
  run_parties({}, [&](ot::Party& party) {
    const int r = party.rank;
    const Words mine = r == 1 ? w : Words{};
    const OwnedWeights weights = owned(fw, mine, {4, 5, 3});
    ProductHalves halves = matmul_halves(weights, 5, 3, 33);
    const PreparedProduct half = prepare_matmul(party, halves, weights, 4);
    const auto bytes = to_bytes(half);
    EXPECT_EQ(std::ssize(bytes), stored_bytes(half));
    EXPECT_FALSE(from_bytes(Bytes(bytes).first(bytes.size() - 1)));
    EXPECT_FALSE(from_bytes(Bytes(bytes).first(10)));
    auto altered = bytes;
    altered[16] ^= 1;  // the number of rows
    EXPECT_FALSE(from_bytes(altered));
    altered = bytes;
    altered[0] ^= 1;
    EXPECT_FALSE(from_bytes(altered));
    out[r].resize(12);
    prepared_matmul(party, from_bytes(bytes).value(), {kShared, 33}, xs[r], weights, out[r]);
  });
  EXPECT_EQ(reconstruct(out, 33), expected_product(x, {kShared, 33}, w, fw, {4, 5, 3}, 33));
}

// Halves of two preparations, of other rows of one, and of fewer rows: the owner of the weights
// computes nothing.
TEST(PreparedProduct, HalvesThatDoNotBelongTogetherAreRefused) {
  const Operand fw{0, 8, true};
  const MatrixShape shape{2, 3, 2};
  enum Wrong { none, other_preparation, other_rows, other_batch };
  for (const Wrong wrong : {none, other_preparation, other_rows, other_batch}) {
    int refused = 0;
    try {
      run_parties({}, [&](ot::Party& party) {
        const bool owns = party.rank == 0;
        const Words w(owns ? 6 : 0), x(6);
        const OwnedWeights weights = owned(fw, w, shape);
        ProductHalves halves = matmul_halves(weights, 3, 2, 32);
        PreparedProduct first = prepare_matmul(party, halves, weights, 4);
        PreparedProduct second = prepare_matmul(party, halves, weights, 4);
        if (!owns && wrong == other_preparation) first = std::move(second);
        if (!owns && wrong == other_rows) take_rows(first, 2);
        if (!owns && wrong == other_batch) ++first.batch;
        Words out(4);
        prepared_matmul(party, take_rows(first, 2), {kShared, 32}, x, weights, out);
      });
    } catch (const ProtocolError&) {
      ++refused;
    } catch (const PeerDisconnected&) {
    }
    EXPECT_EQ(refused, wrong != none) << wrong;
  }
}

TEST(PreparedProduct, FingerprintsTellWeightsApart) {
  const Words w{1, 2, 3, 4, 5, 6}, other{1, 2, 3, 4, 5, 7};
  const auto print = fingerprint({0, 8, true}, w, 2, 3);
  EXPECT_EQ(print, fingerprint({1, 8, true}, w, 2, 3));
  EXPECT_NE(print, fingerprint({0, 8, true}, other, 2, 3));
  EXPECT_NE(print, fingerprint({0, 8, true}, w, 3, 2));
  EXPECT_NE(print, fingerprint({0, 9, true}, w, 2, 3));
  EXPECT_NE(print, fingerprint({0, 8, false}, w, 2, 3));
}

// The shares of a result, once the noise is dropped, and the lengths of all messages depend on no
// weight: all zeros, and all of the largest.
TEST(LatticeMatmul, TrafficOfExtremeWeightsHasOneForm) {
  std::array<net::Traffic, 2> first;
  for (const u64 weight : {u64{0}, u64{0x800}, u64{0x7ff}}) {
    const MatrixShape shape{3, 40, 2};
    const Words y(shape.inner * shape.columns, weight), x = random_words(120, 44, 1);
    const Both<Words> xs = share(x, 44);
    Both<Words> out{Words(6), Words(6)};
    const Outcome outcome = run_parties({}, [&](ot::Party& party) {
      lattice_matmul(party, {kShared, 44}, xs[party.rank], {0, 12, true},
                     party.rank == 0 ? y : Words{}, shape, 44, out[party.rank]);
    });
    EXPECT_EQ(reconstruct(out, 44),
              expected_product(x, {kShared, 44}, y, {0, 12, true}, shape, 44));
    if (weight == 0) first = outcome.record.traffic;
    for (int r : {0, 1}) EXPECT_EQ(outcome.record.traffic[r].sent, first[r].sent);
  }
}

}  // namespace
}  // namespace privml::twopc
