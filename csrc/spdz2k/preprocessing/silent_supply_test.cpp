// SPDX-License-Identifier: Apache-2.0
// A supply on silent transfers sets a silent VOLE up as soon as that saves bytes.
#include <gtest/gtest.h>

#include "spdz2k/preprocessing/triple.h"
#include "spdz2k/testing/supply.h"

namespace privml::spdz2k::testing {
namespace {

template <class R>
class SilentSupply : public ::testing::Test {};
using Rings = ::testing::Types<Ring32, Ring64>;
TYPED_TEST_SUITE(SilentSupply, Rings);

ot::OtConfig silent_ot() { return ot::testing::test_config("silent", 0, "malicious"); }

TYPED_TEST(SilentSupply, CostsWhatIsPredictedBeforeAndAfterTheVoles) {
  using R = TypeParam;
  Demand few, many, more;
  few.masks = {10, 10};
  few.triples = 2;
  many.masks = {90'000, 100'000};
  many.triples = 100;
  many.edabits = {{9, 30}};
  more.squares = 90;
  more.randoms = 2000;
  const ot::OtConfig ot = silent_ot();
  constexpr i64 n = 500;
  const auto record = run_supply<R>(ot, [&](Session<R>& session, PreprocessingSupply<R>& supply) {
    for (const Demand& demand : {few, many, more}) supply.reserve(demand);
    session.channel.flush();
    const i64 sent = session.channel.traffic().sent;
    WordShares<R> a(n), b(90), c(90);
    Words clear(session.rank == 1 ? n : 0);
    supply.masks(1, a, clear);
    supply.squares(b, c);
    EXPECT_EQ(session.channel.traffic().sent, sent);
    const Words mask = values_of<R>(session, a);
    for (std::size_t i = 0; i < clear.size(); ++i) ASSERT_EQ(clear[i], mask[i]);
    const Words x = values_of<R>(session, b), square = values_of<R>(session, c);
    for (i64 i = 0; i < 90; ++i) ASSERT_EQ(square[i], low_bits(x[i] * x[i], R::k));
  });
  CostMeter setup(ot::rcot_cost(ot)), meter(ot::rcot_cost(ot));
  cost_preprocessing_setup<R>(setup);
  meter.available = setup.available;
  Demand stock;
  cost_reserve<R>(meter, stock, few);
  EXPECT_FALSE(meter.voles.has_value());
  cost_reserve<R>(meter, stock, many);
  EXPECT_TRUE(meter.voles.has_value());
  cost_reserve<R>(meter, stock, more);
  for (const int rank : {0, 1}) {
    const ot::PhaseCount& book =
        record.ledger[rank].phases[static_cast<int>(ot::Phase::preprocess)];
    EXPECT_EQ(book.sent, setup.bytes[rank] + meter.bytes[rank]);
    EXPECT_EQ(book.received, setup.bytes[1 - rank] + meter.bytes[1 - rank]);
    EXPECT_EQ(book.depth, setup.depth[rank] + meter.depth[rank]);
    EXPECT_EQ(record.ledger[rank].cots_as_sender, setup.cots[rank] + meter.cots[rank]);
  }
}

// Only with silent transfers: other choices make no new assumption.
TYPED_TEST(SilentSupply, VolesAreForSilentTransfersAlone) {
  using R = TypeParam;
  Demand many;
  many.triples = 1 << 17;
  for (const ot::OtConfig& ot : {malicious_ot(), silent_ot()}) {
    CostMeter meter(ot::rcot_cost(ot));
    Demand stock;
    cost_reserve<R>(meter, stock, many);
    EXPECT_EQ(meter.voles.has_value(), ot.provider == "silent");
  }
}

// Of a large job a triple takes a fifth of the published protocol's bytes, set-up included.
TYPED_TEST(SilentSupply, AFifthOfThePublishedTriple) {
  using R = TypeParam;
  Demand many;
  many.triples = 100'000;
  CostMeter meter(ot::rcot_cost(silent_ot()));
  Demand stock;
  cost_reserve<R>(meter, stock, many);
  EXPECT_LE(5 * 8 * meter.bytes[0], many.triples * kPublishedTripleBits<R>);
}

}  // namespace
}  // namespace privml::spdz2k::testing
