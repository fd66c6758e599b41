// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/preprocessing/preprocessing.h"

#include <gtest/gtest.h>

#include "spdz2k/online/multiply.h"
#include "spdz2k/shares/input_output.h"
#include "spdz2k/testing/supply.h"

namespace privml::spdz2k::testing {
namespace {

template <class R>
class Spdz2kPreprocessing : public ::testing::Test {};
using Rings = ::testing::Types<Ring32, Ring64>;
TYPED_TEST_SUITE(Spdz2kPreprocessing, Rings);

TYPED_TEST(Spdz2kPreprocessing, EveryKindIsWhatItSays) {
  using R = TypeParam;
  run_supply<R>(malicious_ot(), [](Session<R>& session, PreprocessingSupply<R>& supply) {
    constexpr i64 n = 70;
    const auto add = [&](const Words& x, const Words& y, i64 i) {
      return low_bits(x[i] * y[i], R::k);
    };
    WordShares<R> a(n), b(n), c(n);
    supply.triples(a, b, c);
    const Words x = values_of<R>(session, a), y = values_of<R>(session, b),
                z = values_of<R>(session, c);
    for (i64 i = 0; i < n; ++i) ASSERT_EQ(z[i], add(x, y, i));
    supply.squares(a, b);
    const Words u = values_of<R>(session, a), v = values_of<R>(session, b);
    for (i64 i = 0; i < n; ++i) ASSERT_EQ(v[i], add(u, u, i));
    supply.bits(a);
    for (const u64 bit : values_of<R>(session, a)) ASSERT_LE(bit, 1u);
    BitShares<R> p(n), q(n), r(n);
    supply.bit_triples(p, q, r);
    const Bits e = bits_of<R>(session, p), f = bits_of<R>(session, q), g = bits_of<R>(session, r);
    for (i64 i = 0; i < n; ++i) ASSERT_EQ(g[i], e[i] & f[i]);
    for (const int owner : {0, 1}) {
      Words clear(owner == session.rank ? n : 0);
      supply.masks(owner, a, clear);
      const Words opened = values_of<R>(session, a);
      for (std::size_t i = 0; i < clear.size(); ++i) ASSERT_EQ(clear[i], opened[i]);
    }
    WordShares<R> left(2 * 6), right(2 * 12), product(2 * 8);
    supply.matrix_triples({2, 3, 4}, 2, left, right, product);
    const Words l = values_of<R>(session, left), m = values_of<R>(session, right),
                lm = values_of<R>(session, product);
    for (i64 i = 0; i < 16; ++i) {
      u64 sum = 0;
      for (i64 j = 0; j < 3; ++j) sum += l[i / 4 * 3 + j] * m[i / 8 * 12 + j * 4 + i % 4];
      ASSERT_EQ(lm[i], low_bits(sum, R::k));
    }
    for (const int width : {3, R::k}) {
      BitShares<R> planes(width * n);
      supply.edabits(width, a, planes);
      const Words numbers = values_of<R>(session, a);
      const Bits bits = bits_of<R>(session, planes);
      for (i64 i = 0; i < n; ++i) {
        u64 sum = 0;
        for (int j = 0; j < width; ++j) sum |= u64{bits[j * n + i]} << j;
        ASSERT_EQ(numbers[i], sum);
      }
    }
  });
}

TYPED_TEST(Spdz2kPreprocessing, ReserveCostsWhatIsPredictedAndMakesEnough) {
  using R = TypeParam;
  Demand wanted;
  wanted.masks = {10, 300};
  wanted.randoms = 5;
  wanted.triples = 3;
  wanted.squares = 2;
  wanted.bits = 2;
  wanted.bit_triples = 2000;
  wanted.edabits = {{R::k, 5}, {7, 70}};
  wanted.matrices = {{{2, 3, 4}, 3}, {{1, 5, 9}, 1}};
  Demand more;
  more.edabits = {{7, 100}};
  more.bit_triples = 100;
  for (const ot::OtConfig& ot : {malicious_ot(), ideal_ot()}) {
    const auto record = run_supply<R>(ot, [&](Session<R>&, PreprocessingSupply<R>& supply) {
      supply.reserve(wanted);
      supply.reserve(wanted);
      supply.reserve(more);
      EXPECT_TRUE(supply.drawn() == Demand{});
    });
    CostMeter setup(ot::rcot_cost(ot)), meter(ot::rcot_cost(ot));
    cost_preprocessing_setup<R>(setup);
    // Correlated OTs that set-up left in stock.
    meter.available = setup.available;
    Demand stock;
    for (const Demand& demand : {wanted, wanted, more}) cost_reserve<R>(meter, stock, demand);
    for (const int rank : {0, 1}) {
      EXPECT_EQ(record.supply[rank].sent, setup.bytes[rank]);
      EXPECT_EQ(record.supply[rank].depth, setup.depth[rank]);
      EXPECT_EQ(record.body[rank].sent, meter.bytes[rank]);
      EXPECT_EQ(record.body[rank].received, meter.bytes[1 - rank]);
      EXPECT_EQ(record.body[rank].depth, meter.depth[rank]);
      EXPECT_EQ(record.ledger[rank].cots_as_sender, setup.cots[rank] + meter.cots[rank]);
      EXPECT_TRUE(record.stock[rank] == stock);
      const ot::PhaseCount& book =
          record.ledger[rank].phases[static_cast<int>(ot::Phase::preprocess)];
      EXPECT_EQ(book.sent, record.supply[rank].sent + record.body[rank].sent);
    }
    for (const Item item : items_of(wanted)) {
      EXPECT_GE(count_of(stock, item), count_of(wanted, item)) << static_cast<int>(item.kind);
    }
  }
}

// A protocol of the online phase finds what was reserved for it, and draws it once.
TYPED_TEST(Spdz2kPreprocessing, OnlineProtocolsDrawWhatTheyReserved) {
  using R = TypeParam;
  constexpr i64 n = 40;
  const Words x = random_words(n, R::k - 2, 3), y = random_words(n, R::k - 2, 4);
  run_supply<R>(malicious_ot(), [&](Session<R>& session, PreprocessingSupply<R>& supply) {
    WordShares<R> a(n), b(n), product(n);
    const auto mine = [&](int owner, const Words& words) {
      return owner == session.rank ? std::span<const u64>(words) : std::span<const u64>();
    };
    CostMeter meter;
    multiply<R>({meter, n}, {}, {}, {});
    meter.demand.masks = {n, n};
    supply.reserve(meter.demand);
    const Demand before = supply.stock();
    input<R>(session, 0, mine(0, x), a);
    input<R>(session, 1, mine(1, y), b);
    multiply<R>(session, a, b, product);
    EXPECT_TRUE(supply.drawn() == meter.demand);
    const Demand after = supply.stock();
    EXPECT_EQ(before.triples - after.triples, meter.demand.triples);
    EXPECT_EQ(before.masks[0] - after.masks[0], n);
    const Words out = values_of<R>(session, product);
    for (i64 i = 0; i < n; ++i) ASSERT_EQ(out[i], low_bits(x[i] * y[i], R::k));
  });
}

TYPED_TEST(Spdz2kPreprocessing, StoredCorrelationsServeASessionOfTheSameKey) {
  using R = TypeParam;
  constexpr i64 n = 64;
  const std::vector<Item> items{{Kind::triples},     {Kind::matrix_triples, 0, {1, 2, 3}},
                                {Kind::bit_triples}, {Kind::edabits, 5},
                                {Kind::masks, 0},    {Kind::randoms}};
  Both<std::vector<std::vector<u8>>> stored;
  Both<typename R::Word> keys;
  Demand wanted;
  for (const Item item : items) count_of(wanted, item) = n;
  wanted.randoms = 10 * R::s;
  run_supply<R>(malicious_ot(), [&](Session<R>& session, PreprocessingSupply<R>& supply) {
    supply.reserve(wanted);
    keys[session.rank] = session.alpha();
    for (const Item item : items) {
      const i64 count = count_of(wanted, item), before = count_of(supply.stock(), item);
      std::vector<u8> bytes(supply.bytes_of(item, count));
      supply.take_out(item, count, bytes);
      EXPECT_EQ(count_of(supply.stock(), item), before - count);
      stored[session.rank].push_back(std::move(bytes));
    }
  });
  auto [first, second] = net::make_memory_channels();
  Both<std::unique_ptr<net::Channel>> channels{std::move(first), std::move(second)};
  ot::testing::run_pair(
      [&](int rank) {
        crypto::Prg prg({static_cast<u64>(rank), 99});
        Session<R> session(rank, *channels[rank], prg, keys[rank]);
        PreprocessingSupply<R> supply(session, nullptr);
        for (std::size_t i = 0; i < items.size(); ++i) {
          supply.put_in(items[i], count_of(wanted, items[i]), stored[rank][i]);
        }
        EXPECT_TRUE(supply.stock() == wanted);
        WordShares<R> a(n), b(n), c(n);
        supply.triples(a, b, c);
        const Words x = values_of<R>(session, a), y = values_of<R>(session, b),
                    z = values_of<R>(session, c);
        for (i64 i = 0; i < n; ++i) ASSERT_EQ(z[i], low_bits(x[i] * y[i], R::k));
        WordShares<R> left(2 * n), right(6 * n), product(3 * n);
        supply.matrix_triples({1, 2, 3}, n, left, right, product);
        const Words l = values_of<R>(session, left), m = values_of<R>(session, right),
                    lm = values_of<R>(session, product);
        for (i64 i = 0; i < 3 * n; ++i) {
          const u64* row = l.data() + i / 3 * 2;
          const u64* column = m.data() + i / 3 * 6 + i % 3;
          ASSERT_EQ(lm[i], low_bits(row[0] * column[0] + row[1] * column[3], R::k));
        }
        BitShares<R> planes(5 * n);
        supply.edabits(5, a, planes);
        const Words numbers = values_of<R>(session, a);
        const Bits bits = bits_of<R>(session, planes);
        for (i64 i = 0; i < n; ++i) {
          u64 sum = 0;
          for (int j = 0; j < 5; ++j) sum |= u64{bits[j * n + i]} << j;
          ASSERT_EQ(numbers[i], sum);
        }
        EXPECT_THROW(supply.triples(a, b, c), InvalidArgument);
        // The second number has as many bytes modulo 2^64.
        for (const i64 count : {i64{2}, n + (i64{1} << 62)}) {
          EXPECT_THROW(supply.put_in({Kind::triples}, count, stored[rank][0]), InvalidArgument);
        }
      },
      [&] {
        for (auto& channel : channels) channel->close();
      });
}

TYPED_TEST(Spdz2kPreprocessing, PlansMakeWhatBatchesDraw) {
  using R = TypeParam;
  Demand wanted, stock;
  wanted.edabits = {{R::k, 10000}, {R::k - 1, 3}};
  wanted.bits = 1;
  const auto steps = plan_production<R>(0, stock, wanted);
  for (const Step& step : steps) book_step<R>(step, stock);
  EXPECT_GE(stock.edabits[R::k], 10000);
  EXPECT_GE(stock.edabits[R::k - 1], 3);
  EXPECT_GE(stock.bits, 1);
  EXPECT_TRUE(plan_production<R>(0, stock, wanted).empty());
  // Random bits are expensive: numbers of several bits are summed, single ones are composed.
  EXPECT_EQ(cheaper_edabits<R>(40, R::k), EdabitMethod::summed);
  EXPECT_EQ(cheaper_edabits<R>(40, 1), EdabitMethod::composed);
}

}  // namespace
}  // namespace privml::spdz2k::testing
