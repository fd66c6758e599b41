// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/shares/open.h"

#include <gtest/gtest.h>

#include "spdz2k/shares/check.h"
#include "spdz2k/shares/input_output.h"
#include "spdz2k/testing/tampered_run.h"

namespace privml::spdz2k::testing {
namespace {

template <class R>
class Spdz2kOpen : public ::testing::Test {};
using Rings = ::testing::Types<Ring8, Ring32, Ring64>;
TYPED_TEST_SUITE(Spdz2kOpen, Rings);

template <class R>
Words values_for_test(u64 seed = 1) {
  return R::k == 8 ? all_words(8) : random_words(500, R::k, seed);
}

TYPED_TEST(Spdz2kOpen, OpensToEveryWidthAndChecks) {
  using R = TypeParam;
  const Words x = values_for_test<R>();
  const auto shares = share<R>(x);
  for (const int bits : {1, 3, R::k / 2, R::k - 1, R::k}) {
    Both<Words> out{Words(x.size()), Words(x.size())};
    run_parties<R>([&](Session<R>& session) {
      open<R>(session, shares[session.rank], bits, out[session.rank]);
      EXPECT_EQ(session.openings.pending(), std::ssize(x));
      check(session);
      EXPECT_EQ(session.openings.pending(), 0);
    });
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(out[0][i], x[i] & low_mask(bits));
      ASSERT_EQ(out[1][i], out[0][i]);
    }
  }
}

TYPED_TEST(Spdz2kOpen, SharedBits) {
  using R = TypeParam;
  const Words x = random_words(1001, 1);
  const auto shares = share_bits<R>(x);
  Both<Bits> out{Bits(x.size()), Bits(x.size())};
  run_parties<R>([&](Session<R>& session) {
    open_bits<R>(session, shares[session.rank], out[session.rank]);
    check(session);
  });
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(out[0][i], x[i]);
    ASSERT_EQ(out[1][i], x[i]);
  }
}

TYPED_TEST(Spdz2kOpen, LinearOperationsKeepTheMacs) {
  using R = TypeParam;
  const Words x = values_for_test<R>(2), y = values_for_test<R>(3);
  const i64 n = std::ssize(x);
  const auto a = share<R>(x, 4), b = share<R>(y, 5);
  Both<WordShares<R>> sum{WordShares<R>(n), WordShares<R>(n)}, difference = sum, opposite = sum,
                                                               shifted = sum, scaled = sum;
  Both<BitShares<R>> lowest{BitShares<R>(n), BitShares<R>(n)};
  for (int rank : {0, 1}) {
    const auto alpha = ideal_key<R>(kSeed, rank);
    add(a[rank], b[rank], sum[rank]);
    subtract(a[rank], b[rank], difference[rank]);
    negate(a[rank], opposite[rank]);
    add_public(rank, alpha, a[rank], std::span<const u64>(y), shifted[rank]);
    add_public(rank, alpha, shifted[rank], u64{77}, shifted[rank]);
    multiply_public(a[rank], std::span<const u64>(y), scaled[rank]);
    multiply_public(scaled[rank], 3, scaled[rank]);
    to_bits(a[rank], lowest[rank]);
  }
  const Words sums = reconstruct<R>(sum, R::k), differences = reconstruct<R>(difference, R::k),
              opposites = reconstruct<R>(opposite, R::k), shifts = reconstruct<R>(shifted, R::k),
              products = reconstruct<R>(scaled, R::k), bits = reconstruct<R>(lowest, 1);
  for (i64 i = 0; i < n; ++i) {
    ASSERT_EQ(sums[i], low_bits(x[i] + y[i], R::k));
    ASSERT_EQ(differences[i], low_bits(x[i] - y[i], R::k));
    ASSERT_EQ(opposites[i], low_bits(-x[i], R::k));
    ASSERT_EQ(shifts[i], low_bits(x[i] + y[i] + 77, R::k));
    ASSERT_EQ(products[i], low_bits(3 * x[i] * y[i], R::k));
    ASSERT_EQ(bits[i], x[i] & 1);
  }
}

TYPED_TEST(Spdz2kOpen, InputsAndReveals) {
  using R = TypeParam;
  const Words x = values_for_test<R>();
  const i64 n = std::ssize(x);
  for (int owner : {0, 1}) {
    for (int to : {0, 1, kBothParties}) {
      Both<Words> out;
      Both<Bits> bits;
      const Outcome outcome = run_parties<R>([&](Session<R>& session) {
        const int rank = session.rank;
        const bool learns = to == rank || to == kBothParties;
        WordShares<R> shares(n);
        BitShares<R> lowest(n);
        input<R>(session, owner, rank == owner ? std::span<const u64>(x) : std::span<const u64>(),
                 shares);
        to_bits(shares, lowest);
        out[rank].resize(learns ? n : 0);
        bits[rank].resize(learns ? n : 0);
        reveal<R>(session, shares, R::k - 1, to, out[rank]);
        reveal_bits<R>(session, lowest, to, bits[rank]);
      });
      CostMeter meter;
      cost_input<R>(meter, owner, n);
      reveal<R>({meter, n}, {}, R::k - 1, to, {});
      reveal_bits<R>({meter, n}, {}, to, {});
      expect_cost_equals(outcome, meter);
      for (int rank : {0, 1}) {
        for (std::size_t i = 0; i < out[rank].size(); ++i) {
          ASSERT_EQ(out[rank][i], x[i] & low_mask(R::k - 1));
          ASSERT_EQ(bits[rank][i], x[i] & 1);
        }
      }
    }
  }
}

// Several moduli in one check, and checks that come by themselves.
TYPED_TEST(Spdz2kOpen, CostEqualsTheRun) {
  using R = TypeParam;
  const i64 n = kMostPending / 2 - 5;
  const Words x(n, 5);
  const auto shares = share<R>(x);
  Both<BitShares<R>> bits{BitShares<R>(n), BitShares<R>(n)};
  const Outcome outcome = run_parties<R>([&](Session<R>& session) {
    const int rank = session.rank;
    Words out(n);
    Bits lowest(n);
    to_bits(shares[rank], bits[rank]);
    open<R>(session, shares[rank].part(0, 9), R::k, std::span(out).first(9));
    open<R>(session, shares[rank].part(0, 7), 5, std::span(out).first(7));
    open_bits<R>(session, bits[rank], lowest);
    open<R>(session, shares[rank], R::k, out);
    open<R>(session, shares[rank].part(0, 0), R::k, {});
    check(session);
    check(session);
  });
  CostMeter meter;
  cost_open<R>(meter, 9, R::k);
  cost_open<R>(meter, 7, 5);
  cost_open_bits<R>(meter, n);
  cost_open<R>(meter, n, R::k);
  cost_open<R>(meter, 0, R::k);
  cost_check<R>(meter);
  cost_check<R>(meter);
  EXPECT_EQ(meter.checks, 2);
  expect_cost_equals(outcome, meter);
}

TYPED_TEST(Spdz2kOpen, RefusesWrongArguments) {
  using R = TypeParam;
  const auto shares = share<R>({1, 2, 3});
  run_parties<R>([&](Session<R>& session) {
    const WordView<R> x = shares[session.rank];
    Words out(3), fewer(2);
    EXPECT_THROW(open<R>(session, x, 0, out), InvalidArgument);
    EXPECT_THROW(open<R>(session, x, R::k + 1, out), InvalidArgument);
    EXPECT_THROW(open<R>(session, x, R::k, fewer), InvalidArgument);
    EXPECT_THROW(reveal<R>(session, x, R::k, 2, out), InvalidArgument);
    EXPECT_THROW(reveal<R>(session, x, R::k, kBothParties, fewer), InvalidArgument);
    EXPECT_THROW(input<R>(session, session.rank, std::span<const u64>(fewer), WordShares<R>(3)),
                 InvalidArgument);
  });
}

// A party's wrong message, whichever, is found before the result is out. Ring8's checks are too
// weak for this.
template <class R>
void expect_flips_abort(int to) {
  const Words x = random_words(16, R::k);
  const std::function<void(Session<R>&)> body = [&](Session<R>& session) {
    const int rank = session.rank;
    const auto from_one = [&](int owner) {
      return rank == owner ? std::span<const u64>(x) : std::span<const u64>();
    };
    WordShares<R> a(16), b(16);
    BitShares<R> bits(16);
    Words opened(16);
    Bits opened_bits(16);
    input<R>(session, 0, from_one(0), a);
    input<R>(session, 1, from_one(1), b);
    open<R>(session, a, 5, opened);
    open<R>(session, a, R::k, opened);
    to_bits(b, bits);
    open_bits<R>(session, bits, opened_bits);
    Words result(to == kBothParties || to == rank ? 16 : 0);
    reveal<R>(session, b, R::k, to, result);
  };
  expect_every_flip_aborts<R>(body);
}

TEST(Spdz2kTampering, AnyFlippedMessageEndsTheSession) {
  for (int to : {0, 1, kBothParties}) {
    expect_flips_abort<Ring32>(to);
    expect_flips_abort<Ring64>(to);
  }
}

// A share or MAC share that is wrong in any bit of weight below 2^k. (Above, chi * 2^bit may vanish
// mod 2^(k+s); the opened value is right then.)
template <class R>
void expect_wrong_shares_abort() {
  for (int bit = 0; bit < R::k; ++bit) {
    for (const bool in_mac : {false, true}) {
      auto shares = share<R>(random_words(40, R::k));
      auto& words = in_mac ? shares[1].mac : shares[1].value;
      words[17] ^= typename R::Word{1} << bit;
      Both<bool> aborted{};
      run_parties<R>([&](Session<R>& session) {
        const int rank = session.rank;
        Words out(40);
        open<R>(session, shares[rank], R::k, out);
        try {
          check(session);
        } catch (const SecurityAbort& error) {
          aborted[rank] = true;
          EXPECT_NE(std::string(error.what()).find("batch 0 (40 openings)"), std::string::npos);
        }
        // A dead session does nothing more, and knows no key.
        EXPECT_THROW(open<R>(session, shares[rank], R::k, out), SecurityAbort);
        EXPECT_THROW(check(session), SecurityAbort);
        EXPECT_TRUE(session.alpha() == 0);
        EXPECT_EQ(session.openings.pending(), 0);
      });
      EXPECT_TRUE(aborted[0] && aborted[1]) << "bit " << bit << (in_mac ? " of the MAC" : "");
    }
  }
}

TEST(Spdz2kTampering, EveryBitOfAShareCounts) {
  expect_wrong_shares_abort<Ring32>();
  expect_wrong_shares_abort<Ring64>();
}

// The check is no stronger than it should be: with s = 8 a wrong opening passes about one time in
// 2^8 / (s + 1) .. 2^8, and never for an honest session.
TEST(Spdz2kTampering, SoundnessOfTheSmallestRing) {
  using R = Ring8;
  i64 passed = 0;
  constexpr i64 kRuns = 4000;
  run_parties<R>([&](Session<R>& session) {
    const int rank = session.rank;
    crypto::Prg keys({static_cast<u64>(rank), 5});
    for (i64 run = 0; run < kRuns; ++run) {
      // Party 1 opens a value that is wrong by 1.
      auto shares = share<R>({static_cast<u64>(run % 256)}, run);
      shares[1].value[0] += 1;
      Session<R> inner(rank, session.channel, keys, ideal_key<R>(kSeed, rank));
      inner.set_supply(session.supply());
      Words out(1);
      open<R>(inner, shares[rank], 8, out);
      try {
        check(inner);
        if (rank == 0) ++passed;
      } catch (const SecurityAbort&) {
      }
    }
  });
  EXPECT_LT(passed, kRuns * 9 / 256);
}

}  // namespace
}  // namespace privml::spdz2k::testing
