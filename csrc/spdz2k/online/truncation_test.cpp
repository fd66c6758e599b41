// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/online/truncation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "spdz2k/shares/check.h"
#include "spdz2k/shares/chunks.h"
#include "spdz2k/shares/input_output.h"
#include "spdz2k/testing/tampered_run.h"

namespace privml::spdz2k::testing {
namespace {

using Kind = TruncationKind;

template <class R>
class Spdz2kTruncation : public ::testing::Test {};
using Rings = ::testing::Types<Ring8, Ring32, Ring64>;
TYPED_TEST_SUITE(Spdz2kTruncation, Rings);

// result - floor(x / 2^shift) as signed numbers of k bits.
template <class R>
std::vector<i64> errors(const Words& x, const Truncation& how) {
  const i64 n = std::ssize(x);
  const auto shares = share<R>(x);
  Both<WordShares<R>> out{WordShares<R>(n), WordShares<R>(n)};
  const Outcome outcome = run_parties<R>([&](Session<R>& session) {
    truncate<R>(session, shares[session.rank], how, out[session.rank]);
    check(session);
  });
  CostMeter meter;
  truncate<R>({meter, n}, {}, how, {});
  cost_check<R>(meter);
  expect_cost_equals(outcome, meter);
  const Words values = reconstruct<R>(out, R::k);
  std::vector<i64> found(n);
  for (i64 i = 0; i < n; ++i) {
    const u64 low = x[i] & low_mask(how.width);
    const u64 exact =
        how.is_signed ? static_cast<u64>(to_signed(low, how.width) >> how.shift) : low >> how.shift;
    found[i] = to_signed((values[i] - exact) & low_mask(R::k), R::k);
  }
  return found;
}

// Whether `error` is one that the kind may make; `large` is 2^(width - shift).
bool allowed(Kind kind, i64 error, u64 large, int k) {
  const auto is = [&](u64 value) { return ((static_cast<u64>(error) - value) & low_mask(k)) == 0; };
  const bool small = error == 0 || error == 1;
  switch (kind) {
    case Kind::exact:
    case Kind::exact_bounded:
      return error == 0;
    case Kind::exact_high:
    case Kind::bounded:
      return small;
    case Kind::exact_low:
      return error == 0 || is(large) || is(u64{0} - large);
    case Kind::probable:
      return small || is(large) || is(large + 1) || is(u64{0} - large) || is(1 - large);
  }
  return false;
}

TYPED_TEST(Spdz2kTruncation, EveryKindMakesOnlyItsErrors) {
  using R = TypeParam;
  const std::vector<int> widths =
      R::k == 8 ? std::vector<int>{2, 3, 5, 8} : std::vector<int>{R::k - 9, R::k};
  for (const int width : widths) {
    for (int shift = 1; shift < width; shift += R::k == 8 ? 1 : width / 3) {
      for (const Kind kind : {Kind::probable, Kind::exact_low, Kind::exact_high, Kind::exact,
                              Kind::bounded, Kind::exact_bounded}) {
        for (const bool is_signed : {true, false}) {
          const bool bounded = kind == Kind::bounded || kind == Kind::exact_bounded;
          if (bounded && (shift > width - 2 || !is_signed)) continue;
          SCOPED_TRACE(::testing::Message() << "width " << width << ", shift " << shift << ", kind "
                                            << static_cast<int>(kind) << ", signed " << is_signed);
          Words x;
          for (int repeat = 0; repeat < (R::k == 8 ? 8 : 1); ++repeat) {
            const Words values = R::k == 8 ? all_words(8) : random_words(200, R::k, repeat);
            for (const u64 word : values) {
              const i64 value = to_signed(word & low_mask(width), width);
              const i64 bound = i64{1} << (width - 2);
              if (bounded && (value < -bound || value >= bound)) continue;
              x.push_back(word);
            }
          }
          const u64 large = width - shift >= 64 ? 0 : u64{1} << (width - shift);
          for (const i64 error : errors<R>(x, {width, shift, kind, is_signed})) {
            ASSERT_TRUE(allowed(kind, error, large, R::k)) << error;
          }
        }
      }
    }
  }
}

// The rounding carry comes with the probability of what is cut off, the large error with |x| /
// 2^width.
TEST(Spdz2kTruncationFrequencies, AreThoseOfTheFractionAndOfTheSize) {
  using R = Ring8;
  constexpr i64 kRuns = 20000;
  const auto near = [](i64 count, double probability) {
    const double deviation = std::sqrt(probability * (1 - probability) / kRuns) + 1e-9;
    return std::abs(static_cast<double>(count) / kRuns - probability) < 5 * deviation;
  };
  for (const i64 x : {5, 40, 64, 100, -3, -64, -100}) {
    SCOPED_TRACE(x);
    const Words values(kRuns, static_cast<u64>(x) & 255);
    i64 carries = 0, large = 0;
    for (const i64 error : errors<R>(values, {8, 3, Kind::probable, true})) {
      carries += (error & 7) == 1;
      large += std::abs(error) > 1;
    }
    EXPECT_TRUE(near(carries, static_cast<double>(x & 7) / 8)) << carries;
    EXPECT_TRUE(near(large, static_cast<double>(std::abs(x)) / 256)) << large;
  }
}

TEST(Spdz2kTruncationFrequencies, BoundedValuesTakeOneOpening) {
  CostMeter meter;
  truncate<Ring64>({meter, 1000}, {}, {64, 16, Kind::bounded}, {});
  EXPECT_EQ(meter.bytes[0], 8000);
  EXPECT_EQ(meter.depth[0], 1);
  EXPECT_EQ(meter.demand.bit_triples, 0);
}

TYPED_TEST(Spdz2kTruncation, RefusesWrongWidths) {
  using R = TypeParam;
  const auto shares = share<R>({1});
  run_parties<R>([&](Session<R>& session) {
    WordShares<R> out(1);
    const WordView<R> x = shares[session.rank];
    for (const Truncation& how : {Truncation{R::k + 1, 1, Kind::exact},
                                  {1, 1, Kind::exact},
                                  {R::k, 0, Kind::exact},
                                  {R::k, R::k, Kind::exact},
                                  {R::k, R::k - 1, Kind::bounded}}) {
      EXPECT_THROW(truncate<R>(session, x, how, out), InvalidArgument);
    }
  });
}

template <class R>
void expect_flips_abort() {
  const Words x = random_words(16, R::k);
  expect_every_flip_aborts<R>([&](Session<R>& session) {
    WordShares<R> a(16);
    const bool mine = session.rank == 0;
    input<R>(session, 0, mine ? std::span<const u64>(x) : std::span<const u64>(), a);
    truncate<R>(session, a, {R::k, 8, Kind::exact}, a);
    truncate<R>(session, a, {R::k, 4, Kind::exact_low}, a);
    truncate<R>(session, a, {R::k, 4, Kind::bounded}, a);
    truncate<R>(session, a, {R::k, 4, Kind::exact_bounded}, a);
    Words result(16);
    reveal<R>(session, a, R::k, kBothParties, result);
  });
}

TEST(Spdz2kTampering, Truncations) {
  expect_flips_abort<Ring32>();
  expect_flips_abort<Ring64>();
}

}  // namespace
}  // namespace privml::spdz2k::testing
