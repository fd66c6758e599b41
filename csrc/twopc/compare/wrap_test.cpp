// SPDX-License-Identifier: Apache-2.0
#include "twopc/compare/wrap.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "twopc/testing/parties.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

bool carry(u64 x0, u64 x1, int bits) {
  const u64 mask = low_mask(bits);
  return static_cast<u128>(x0 & mask) + (x1 & mask) > mask;
}

u64 sum(const Both<Words>& x, std::size_t i, int bits) {
  return (x[0][i] + x[1][i]) & low_mask(bits);
}

void check_wrap(const Both<Words>& x, int bits) {
  const std::size_t n = x[0].size();
  Both<Bits> w{Bits(n), Bits(n)}, v = w, ones = w, msb = w;
  run_parties({}, [&](ot::Party& party) {
    const int r = party.rank;
    wrap(party, x[r], bits, w[r]);
    wrap_with_all_ones(party, x[r], bits, v[r], ones[r]);
    most_significant_bit(party, x[r], bits, msb[r]);
  });
  const Bits c = reconstruct_bits(w), d = reconstruct_bits(v), e = reconstruct_bits(ones),
             m = reconstruct_bits(msb);
  for (std::size_t i = 0; i < n; ++i) {
    ASSERT_EQ(c[i], carry(x[0][i], x[1][i], bits)) << x[0][i] << " + " << x[1][i] << ", " << bits;
    ASSERT_EQ(d[i], c[i]);
    ASSERT_EQ(e[i], sum(x, i, bits) == low_mask(bits)) << x[0][i] << " + " << x[1][i];
    ASSERT_EQ(m[i], sum(x, i, bits) >> (bits - 1)) << x[0][i] << " + " << x[1][i] << ", " << bits;
  }
}

// Known and shared most significant bit.
void check_with_msb(const Both<Words>& x, int bits) {
  for (u8 msb : {u8{0}, u8{1}}) {
    Both<Words> chosen;
    for (std::size_t i = 0; i < x[0].size(); ++i) {
      if (sum(x, i, bits) >> (bits - 1) != msb) continue;
      for (int r : {0, 1}) chosen[r].push_back(x[r][i]);
    }
    const std::size_t n = chosen[0].size();
    const Both<Bits> shared = share_bits(Bits(n, msb));
    Both<Bits> known{Bits(n), Bits(n)}, unknown = known;
    run_parties({}, [&](ot::Party& party) {
      const int r = party.rank;
      wrap_known_msb(party, chosen[r], bits, msb, known[r]);
      wrap_shared_msb(party, chosen[r], bits, shared[r], unknown[r]);
    });
    const Bits k = reconstruct_bits(known), u = reconstruct_bits(unknown);
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_EQ(k[i], carry(chosen[0][i], chosen[1][i], bits)) << chosen[0][i] << ", " << bits;
      ASSERT_EQ(u[i], k[i]) << chosen[0][i] << " + " << chosen[1][i] << ", " << bits;
    }
  }
}

TEST(Wrap, ExhaustiveAtSmallWidths) {
  for (int bits = 1; bits <= 6; ++bits) {
    const Both<Words> x = all_share_pairs(bits);
    check_wrap(x, bits);
    check_with_msb(x, bits);
  }
}

TEST(Wrap, RandomAtLargerWidths) {
  for (int bits : {7, 12, 16, 31, 32, 33, 37, 63, 64}) {
    Both<Words> x = share(random_words(500, bits), bits);
    add_noise_above(x, bits);
    check_wrap(x, bits);
    check_with_msb(x, bits);
  }
}

TEST(Wrap, CostEqualsTheLedger) {
  const Both<Words> x = share(random_words(kLargestN, 33), 33);
  const Both<Bits> msb = share_bits(Bits(kLargestN));
  Both<Bits> a{Bits(kLargestN), Bits(kLargestN)}, b = a;
  expect_costs_equal([&](i64 n) -> std::vector<CostRow> {
    const auto in = [&, n](ot::Party& p) { return std::span(x[p.rank]).first(n); };
    const auto first = [&, n](ot::Party& p) { return std::span(a[p.rank]).first(n); };
    const auto second = [&, n](ot::Party& p) { return std::span(b[p.rank]).first(n); };
    const auto sign = [&, n](ot::Party& p) { return std::span(msb[p.rank]).first(n); };
    return {
        {[=](ot::Party& p) { wrap(p, in(p), 33, first(p)); },
         [n](ot::CostMeter& m) { cost_wrap(m, n, 33); }},
        {[=](ot::Party& p) { wrap_with_all_ones(p, in(p), 8, first(p), second(p)); },
         [n](ot::CostMeter& m) { cost_wrap_with_all_ones(m, n, 8); }},
        {[=](ot::Party& p) { wrap_known_msb(p, in(p), 33, 0, first(p)); },
         [n](ot::CostMeter& m) { cost_wrap_known_msb(m, n); }},
        {[=](ot::Party& p) { wrap_shared_msb(p, in(p), 33, sign(p), first(p)); },
         [n](ot::CostMeter& m) { cost_wrap_shared_msb(m, n); }},
        {[=](ot::Party& p) { most_significant_bit(p, in(p), 20, first(p)); },
         [n](ot::CostMeter& m) { cost_most_significant_bit(m, n, 20); }},
        {[=](ot::Party& p) { most_significant_bit(p, in(p), 1, first(p)); },
         [n](ot::CostMeter& m) { cost_most_significant_bit(m, n, 1); }},
    };
  });
}

TEST(Wrap, RefusesBadArguments) {
  run_parties({}, [](ot::Party& party) {
    const Words x(3);
    Bits out(3), wrong(2);
    EXPECT_THROW(wrap(party, x, 65, out), InvalidArgument);
    EXPECT_THROW(wrap(party, x, 8, wrong), InvalidArgument);
    EXPECT_THROW(wrap_known_msb(party, x, 0, 0, out), InvalidArgument);
    EXPECT_THROW(wrap_known_msb(party, x, 8, 2, out), InvalidArgument);
    EXPECT_THROW(wrap_shared_msb(party, x, 8, wrong, out), InvalidArgument);
    EXPECT_THROW(most_significant_bit(party, x, 0, out), InvalidArgument);
  });
}

}  // namespace
}  // namespace privml::twopc
