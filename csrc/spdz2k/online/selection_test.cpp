// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/online/selection.h"

#include <gtest/gtest.h>

#include "spdz2k/shares/check.h"
#include "spdz2k/shares/input_output.h"
#include "spdz2k/testing/tampered_run.h"

namespace privml::spdz2k::testing {
namespace {

template <class R>
class Spdz2kSelection : public ::testing::Test {};
using Rings = ::testing::Types<Ring8, Ring32, Ring64>;
TYPED_TEST_SUITE(Spdz2kSelection, Rings);

TYPED_TEST(Spdz2kSelection, SelectsAndRectifies) {
  using R = TypeParam;
  const Words x = R::k == 8 ? all_words(8) : random_words(500, R::k);
  const i64 n = std::ssize(x);
  const Words y = random_words(n, R::k, 3), bits = random_words(n, 1, 4);
  const auto a = share<R>(x, 5), b = share<R>(y, 6), choice = share<R>(bits, 7);
  for (const int width : {R::k, R::k / 2}) {
    Both<WordShares<R>> chosen{WordShares<R>(n), WordShares<R>(n)}, rectified = chosen;
    const Outcome outcome = run_parties<R>([&](Session<R>& session) {
      const int rank = session.rank;
      select<R>(session, choice[rank], a[rank], b[rank], chosen[rank]);
      relu<R>(session, a[rank], width, rectified[rank]);
      check(session);
    });
    const Words selected = reconstruct<R>(chosen, R::k), positive = reconstruct<R>(rectified, R::k);
    for (i64 i = 0; i < n; ++i) {
      ASSERT_EQ(selected[i], bits[i] ? x[i] : y[i]);
      ASSERT_EQ(positive[i], x[i] >> (width - 1) & 1 ? 0 : x[i]);
    }
    CostMeter meter;
    select<R>({meter, n}, {}, {}, {}, {});
    relu<R>({meter, n}, {}, width, {});
    cost_check<R>(meter);
    expect_cost_equals(outcome, meter);
  }
}

TYPED_TEST(Spdz2kSelection, TournamentsOfEverySize) {
  using R = TypeParam;
  const i64 n = 60;
  for (const i64 count : {1, 2, 3, 4, 5, 6, 7, 8, 11}) {
    SCOPED_TRACE(count);
    // Small numbers, so that many are equal, and large ones.
    Words x = random_words(count * n, R::k - 2, count);
    for (i64 i = 0; i < count * n; ++i) {
      x[i] = static_cast<u64>(to_signed(i % 2 ? x[i] % 3 : x[i], R::k - 2)) & low_mask(R::k);
    }
    const auto shares = share<R>(x);
    for (const Winner kind : {Winner::none, Winner::index, Winner::one_hot}) {
      const i64 size = kind == Winner::none ? 0 : kind == Winner::index ? n : count * n;
      Both<WordShares<R>> best{WordShares<R>(n), WordShares<R>(n)},
          winner{WordShares<R>(size), WordShares<R>(size)};
      const Outcome outcome = run_parties<R>([&](Session<R>& session) {
        const int rank = session.rank;
        maximum<R>(session, shares[rank], count, R::k, best[rank], kind, winner[rank]);
        check(session);
      });
      const Words maxima = reconstruct<R>(best, R::k), winners = reconstruct<R>(winner, R::k);
      for (i64 i = 0; i < n; ++i) {
        i64 last = 0;
        for (i64 j = 1; j < count; ++j) {
          if (to_signed(x[j * n + i], R::k) >= to_signed(x[last * n + i], R::k)) last = j;
        }
        ASSERT_EQ(maxima[i], x[last * n + i]);
        if (kind == Winner::index) {
          ASSERT_EQ(winners[i], static_cast<u64>(last));
        }
        for (i64 j = 0; kind == Winner::one_hot && j < count; ++j) {
          ASSERT_EQ(winners[j * n + i], static_cast<u64>(j == last));
        }
      }
      CostMeter meter;
      maximum<R>({meter, n}, {}, count, R::k, {}, kind);
      cost_check<R>(meter);
      expect_cost_equals(outcome, meter);
    }
  }
}

template <class R>
void expect_flips_abort() {
  const Words x = random_words(16, R::k);
  expect_every_flip_aborts<R>([&](Session<R>& session) {
    WordShares<R> a(16), b(8), index(8);
    const bool mine = session.rank == 0;
    input<R>(session, 0, mine ? std::span<const u64>(x) : std::span<const u64>(), a);
    relu<R>(session, a, R::k, a);
    maximum<R>(session, a, 2, 8, b, Winner::index, index);
    Words result(8);
    reveal<R>(session, index, R::k, kBothParties, result);
    reveal<R>(session, b, R::k, kBothParties, result);
  });
}

TEST(Spdz2kTampering, Selections) {
  expect_flips_abort<Ring32>();
  expect_flips_abort<Ring64>();
}

}  // namespace
}  // namespace privml::spdz2k::testing
