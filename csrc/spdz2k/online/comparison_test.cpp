// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/online/comparison.h"

#include <gtest/gtest.h>

#include "spdz2k/online/bit_less_than.h"
#include "spdz2k/shares/check.h"
#include "spdz2k/shares/chunks.h"
#include "spdz2k/shares/input_output.h"
#include "spdz2k/testing/tampered_run.h"

namespace privml::spdz2k::testing {
namespace {

template <class R>
class Spdz2kComparison : public ::testing::Test {};
using Rings = ::testing::Types<Ring8, Ring32, Ring64>;
TYPED_TEST_SUITE(Spdz2kComparison, Rings);

// All pairs of `bits`-bit numbers up to 8 bits, of edges and random ones beyond.
Both<Words> pairs(int bits, u64 seed = 1) {
  const Words values = bits <= 8 ? all_words(bits) : random_words(60, bits, seed);
  Both<Words> out;
  for (const u64 x : values) {
    for (const u64 y : values) {
      out[0].push_back(x);
      out[1].push_back(y);
    }
  }
  return out;
}

// The shared planes of the bits of x.
template <class R>
Both<BitShares<R>> share_planes(const Words& x, int width, u64 seed = 1) {
  Words bits;
  for (int j = 0; j < width; ++j) {
    for (const u64 word : x) bits.push_back(word >> j & 1);
  }
  return share_bits<R>(bits, seed);
}

template <class R>
std::vector<int> widths() {
  if (R::k == 8) return {1, 2, 3, 4, 5, 6, 7, 8};
  return {1, 13, R::k - 1, R::k};
}

TYPED_TEST(Spdz2kComparison, PublicAgainstSharedBits) {
  using R = TypeParam;
  for (const int width : widths<R>()) {
    const auto [c, r] = pairs(width);
    const i64 n = std::ssize(c);
    const auto planes = share_planes<R>(r, width);
    Both<BitShares<R>> less{BitShares<R>(n), BitShares<R>(n)}, greater = less, also_less = less,
                                                               equal = less;
    const Outcome outcome = run_parties<R>([&](Session<R>& session) {
      const int rank = session.rank;
      bit_less_than<R>(session, c, planes[rank], width, less[rank]);
      const std::array<PublicComparison<R>, 2> comparisons{
          PublicComparison<R>{c, planes[rank], width, Order::greater, greater[rank]},
          PublicComparison<R>{c, planes[rank], width, Order::less, also_less[rank], equal[rank],
                              true}};
      compare_public<R>(session, comparisons);
      check(session);
    });
    const Words is_less = reconstruct<R>(less, 1), is_greater = reconstruct<R>(greater, 1),
                is_less_too = reconstruct<R>(also_less, 1), is_equal = reconstruct<R>(equal, 1);
    for (i64 i = 0; i < n; ++i) {
      ASSERT_EQ(is_less[i], c[i] < r[i]) << "width " << width;
      ASSERT_EQ(is_less_too[i], c[i] < r[i]) << "width " << width;
      ASSERT_EQ(is_greater[i], c[i] > r[i]) << "width " << width;
      ASSERT_EQ(is_equal[i], c[i] == r[i]) << "width " << width;
    }
    CostMeter meter;
    bit_less_than<R>({meter, n}, {}, {}, width, {});
    const std::array<PublicComparison<R>, 2> alike{
        PublicComparison<R>{{}, {}, width, Order::greater, {}},
        PublicComparison<R>{{}, {}, width, Order::less, {}, {}, true}};
    compare_public<R>({meter, n}, alike);
    cost_check<R>(meter);
    expect_cost_equals(outcome, meter);
  }
}

TYPED_TEST(Spdz2kComparison, MostSignificantBitAndZero) {
  using R = TypeParam;
  for (const int width : widths<R>()) {
    // The bits above the width must not matter.
    Words x = R::k == 8 ? all_words(8) : random_words(1001, R::k, width);
    x.insert(x.end(), 20, 0);
    const i64 n = std::ssize(x);
    const auto shares = share<R>(x);
    Both<BitShares<R>> msb{BitShares<R>(n), BitShares<R>(n)}, zero = msb;
    Both<WordShares<R>> zero_words{WordShares<R>(n), WordShares<R>(n)};
    const Outcome outcome = run_parties<R>([&](Session<R>& session) {
      const int rank = session.rank;
      most_significant_bit<R>(session, shares[rank], width, msb[rank]);
      equal_zero_bits<R>(session, shares[rank], width, zero[rank]);
      equal_zero<R>(session, shares[rank], width, zero_words[rank]);
      check(session);
    });
    const Words msbs = reconstruct<R>(msb, 1), zeros = reconstruct<R>(zero, 1),
                words = reconstruct<R>(zero_words, R::k);
    for (i64 i = 0; i < n; ++i) {
      ASSERT_EQ(msbs[i], x[i] >> (width - 1) & 1) << x[i] << ", width " << width;
      ASSERT_EQ(zeros[i], (x[i] & low_mask(width)) == 0) << x[i] << ", width " << width;
      ASSERT_EQ(words[i], zeros[i]);
    }
    CostMeter meter;
    most_significant_bit<R>({meter, n}, {}, width, {});
    equal_zero_bits<R>({meter, n}, {}, width, {});
    equal_zero<R>({meter, n}, {}, width, {});
    cost_check<R>(meter);
    expect_cost_equals(outcome, meter);
  }
}

TYPED_TEST(Spdz2kComparison, LessThanInBothRanges) {
  using R = TypeParam;
  for (const int width : {R::k, R::k - 2}) {
    const auto [x, y] = pairs(R::k, width);
    const i64 n = std::ssize(x);
    const auto a = share<R>(x, 2), b = share<R>(y, 3);
    Both<WordShares<R>> restricted{WordShares<R>(n), WordShares<R>(n)}, full = restricted;
    const Outcome outcome = run_parties<R>([&](Session<R>& session) {
      const int rank = session.rank;
      less_than<R>(session, a[rank], b[rank], width, Range::restricted, restricted[rank]);
      less_than<R>(session, a[rank], b[rank], width, Range::full, full[rank]);
      check(session);
    });
    const Words narrow = reconstruct<R>(restricted, R::k), wide = reconstruct<R>(full, R::k);
    const i64 bound = i64{1} << (width - 2);
    i64 beyond = 0;
    for (i64 i = 0; i < n; ++i) {
      const i64 left = to_signed(x[i], width), right = to_signed(y[i], width);
      ASSERT_EQ(wide[i], left < right) << left << " < " << right;
      if (-bound <= left && left < bound && -bound <= right && right < bound) {
        ASSERT_EQ(narrow[i], left < right) << left << " < " << right;
      }
      beyond += narrow[i] != static_cast<u64>(left < right);
    }
    EXPECT_GT(beyond, 0);  // else the two ranges would be one
    CostMeter meter;
    less_than<R>({meter, n}, {}, {}, width, Range::restricted, {});
    less_than<R>({meter, n}, {}, {}, width, Range::full, {});
    cost_check<R>(meter);
    expect_cost_equals(outcome, meter);
  }
}

// Several parts, and the published numbers of bytes.
TEST(Spdz2kComparisonBytes, LongInputs) {
  using R = Ring64;
  const i64 n = kComparisons + 8;
  const Words x = random_words(n, 64);
  const auto shares = share<R>(x);
  Both<BitShares<R>> msb{BitShares<R>(n), BitShares<R>(n)};
  const Outcome outcome = run_parties<R>([&](Session<R>& session) {
    most_significant_bit<R>(session, shares[session.rank], 64, msb[session.rank]);
  });
  const Words bits = reconstruct<R>(msb, 1);
  for (i64 i = 0; i < n; ++i) ASSERT_EQ(bits[i], x[i] >> 63);
  CostMeter meter;
  most_significant_bit<R>({meter, n}, {}, 64, {});
  EXPECT_GT(meter.checks, 0);
  expect_cost_equals(outcome, meter);

  const auto bytes_of_1000 = [](auto&& cost) {
    CostMeter one;
    cost(one);
    return one.bytes[0];
  };
  // Published: 94 and 46 bytes per comparison, 48 and 24 per equality test.
  EXPECT_EQ(bytes_of_1000(
                [](auto& m) { less_than<Ring64>({m, 1000}, {}, {}, 64, Range::restricted, {}); }),
            30125);
  EXPECT_EQ(bytes_of_1000(
                [](auto& m) { less_than<Ring32>({m, 1000}, {}, {}, 32, Range::restricted, {}); }),
            14375);
  EXPECT_EQ(bytes_of_1000([](auto& m) { equal_zero<Ring64>({m, 1000}, {}, 64, {}); }), 23875);
  EXPECT_EQ(bytes_of_1000([](auto& m) { equal_zero<Ring32>({m, 1000}, {}, 32, {}); }), 11875);
}

template <class R>
void expect_flips_abort() {
  const Words x = random_words(16, R::k);
  expect_every_flip_aborts<R>([&](Session<R>& session) {
    WordShares<R> a(16), b(16);
    for (int owner : {0, 1}) {
      const bool mine = owner == session.rank;
      input<R>(session, owner, mine ? std::span<const u64>(x) : std::span<const u64>(),
               owner == 0 ? a : b);
    }
    less_than<R>(session, a, b, R::k, Range::full, a);
    equal_zero<R>(session, a, 8, a);
    Words result(16);
    reveal<R>(session, a, R::k, kBothParties, result);
  });
}

TEST(Spdz2kTampering, Comparisons) {
  expect_flips_abort<Ring32>();
  expect_flips_abort<Ring64>();
}

}  // namespace
}  // namespace privml::spdz2k::testing
