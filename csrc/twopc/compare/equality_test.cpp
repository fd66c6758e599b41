// SPDX-License-Identifier: Apache-2.0
#include "twopc/compare/equality.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "twopc/testing/parties.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

void check(const OtKind& kind, const Both<Words>& x, int bits) {
  const std::size_t n = x[0].size();
  Both<Bits> same{Bits(n), Bits(n)}, zero = same;
  run_parties(kind, [&](ot::Party& party) {
    equal(party, x[party.rank], bits, same[party.rank]);
    equal_zero(party, x[party.rank], bits, zero[party.rank]);
  });
  const Bits s = reconstruct_bits(same), z = reconstruct_bits(zero);
  for (std::size_t i = 0; i < n; ++i) {
    const u64 difference = (x[0][i] - x[1][i]) & low_mask(bits);
    ASSERT_EQ(s[i], difference == 0) << x[0][i] << ", " << x[1][i] << " in " << bits << " bits";
    const u64 sum = (x[0][i] + x[1][i]) & low_mask(bits);
    ASSERT_EQ(z[i], sum == 0) << x[0][i] << " + " << x[1][i] << " in " << bits << " bits";
  }
}

TEST(Equality, ExhaustiveAtSmallWidths) {
  for (int bits = 1; bits <= 6; ++bits) check({}, all_share_pairs(bits), bits);
}

// Equal, complementary, zero sums, one bit apart in each position, and random.
TEST(Equality, EveryWidth) {
  for (int bits = 1; bits <= 64; ++bits) {
    const u64 mask = low_mask(bits);
    Both<Words> x{random_words(400, bits, 1), random_words(400, bits, 2)};
    for (i64 i = 0; i < 300; ++i) {
      const u64 value = x[0][i];
      const u64 flipped = value ^ (u64{1} << (i / 3 % bits));
      x[1][i] = i % 3 == 0 ? value : i % 3 == 1 ? flipped : u64{0} - value;
      if (i >= 290) x[1][i] = ~value;
      x[1][i] &= mask;
    }
    add_noise_above(x, bits);
    check({}, x, bits);
  }
}

TEST(Equality, SoftSpoken) {
  const Words values = random_words(200, 32);
  for (int k : {1, 8}) check({false, k}, share(values, 32), 32);
}

TEST(Equality, CostEqualsTheLedger) {
  const Both<Words> x = share(random_words(kLargestN, 64), 64);
  Both<Bits> out{Bits(kLargestN), Bits(kLargestN)};
  expect_costs_equal([&](i64 n) {
    std::vector<CostRow> rows;
    for (int bits : {5, 11, 12, 32}) {
      rows.push_back({[&, n, bits](ot::Party& p) {
                        equal_zero(p, std::span(x[p.rank]).first(n), bits,
                                   std::span(out[p.rank]).first(n));
                      },
                      [n, bits](ot::CostMeter& m) { cost_equal_zero(m, n, bits); }});
    }
    return rows;
  });
}

TEST(Equality, RefusesBadArguments) {
  run_parties({}, [](ot::Party& party) {
    const Words x(3);
    Bits out(3), wrong(2);
    EXPECT_THROW(equal(party, x, 0, out), InvalidArgument);
    EXPECT_THROW(equal(party, x, 65, out), InvalidArgument);
    EXPECT_THROW(equal_zero(party, x, 8, wrong), InvalidArgument);
  });
}

}  // namespace
}  // namespace privml::twopc
