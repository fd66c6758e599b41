// SPDX-License-Identifier: Apache-2.0
#include "twopc/select/boolean.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "twopc/select/bit_products.h"
#include "twopc/testing/parties.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

TEST(Boolean, TruthTablesOverAllShares) {
  // Every combination of the two shares of a and of b, many times.
  Both<Bits> a, b;
  for (int i = 0; i < 16 * 40; ++i) {
    a[0].push_back(i & 1);
    a[1].push_back(i >> 1 & 1);
    b[0].push_back(i >> 2 & 1);
    b[1].push_back(i >> 3 & 1);
  }
  const std::size_t n = a[0].size();
  for (const OtKind& kind : {OtKind{true, 0}, OtKind{false, 4}}) {
    Both<Bits> both{Bits(n), Bits(n)}, either = both, mine = both;
    run_parties(kind, [&](ot::Party& party) {
      const int r = party.rank;
      and_bits(party, a[r], b[r], both[r]);
      or_bits(party, a[r], b[r], either[r]);
      and_private(party, r == 0 ? a[0] : b[1], mine[r]);
    });
    const Bits x = reconstruct_bits(a), y = reconstruct_bits(b);
    const Bits x_and_y = reconstruct_bits(both), x_or_y = reconstruct_bits(either),
               product = reconstruct_bits(mine);
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_EQ(x_and_y[i], x[i] & y[i]);
      ASSERT_EQ(x_or_y[i], x[i] | y[i]);
      ASSERT_EQ(product[i], a[0][i] & b[1][i]);
    }
  }
}

TEST(Boolean, StringsOfEveryWidth) {
  for (int width = 1; width <= 8; ++width) {
    const i64 n = 200;
    const Bits a = random_bits(n, 3);
    Bits b(n);
    for (i64 i = 0; i < n; ++i) b[i] = static_cast<u8>((37 * i + 11) & low_mask(width));
    const Both<Bits> shares_a = share_bits(a, 4);
    Both<Bits> shares_b{Bits(n), b};
    for (i64 i = 0; i < n; ++i) {
      shares_b[0][i] = static_cast<u8>(101 * i & low_mask(width));
      shares_b[1][i] ^= shares_b[0][i];
    }
    Both<Bits> out{Bits(n), Bits(n)};
    run_parties({}, [&](ot::Party& p) {
      and_strings(p, shares_a[p.rank], shares_b[p.rank], width, out[p.rank]);
    });
    const Bits result = reconstruct_bits(out);
    for (i64 i = 0; i < n; ++i) ASSERT_EQ(result[i], a[i] ? b[i] : 0) << "width " << width;
  }
}

// Products of different widths in one exchange, in any order, with and without accumulation.
TEST(Boolean, PlanesOfDifferentWidths) {
  const i64 n = 100;
  const std::vector<int> widths{3, 1, 8, 1, 2};
  std::vector<Both<Bits>> commons, factors;
  std::vector<Bits> expected;
  std::vector<std::vector<Bits>> initial;
  for (int width : widths) {
    commons.push_back(share_bits(random_bits(n, commons.size()), 50 + commons.size()));
    for (int j = 0; j < width; ++j) {
      factors.push_back(share_bits(random_bits(n, 100 + factors.size()), 150 + factors.size()));
    }
  }
  Both<std::vector<Bits>> out{std::vector<Bits>(factors.size(), Bits(n)),
                              std::vector<Bits>(factors.size(), Bits(n))};
  for (std::size_t j = 0; j < factors.size(); j += 2) out[0][j] = random_bits(n, 300 + j);
  const Both<std::vector<Bits>> before = out;
  run_parties({}, [&](ot::Party& party) {
    const int r = party.rank;
    std::vector<PlaneProduct> products;
    std::size_t at = 0;
    for (std::size_t k = 0; k < widths.size(); ++k) {
      PlaneProduct product{commons[k][r].data(), {}};
      for (int j = 0; j < widths[k]; ++j, ++at) {
        product.factors.push_back({factors[at][r].data(), out[r][at].data(), at % 2 == 0});
      }
      products.push_back(product);
    }
    multiply_planes(party, products, n);
  });
  std::size_t at = 0;
  for (std::size_t k = 0; k < widths.size(); ++k) {
    const Bits common = reconstruct_bits(commons[k]);
    for (int j = 0; j < widths[k]; ++j, ++at) {
      const Bits factor = reconstruct_bits(factors[at]);
      const Bits result = reconstruct_bits({out[0][at], out[1][at]});
      for (i64 i = 0; i < n; ++i) {
        const u8 kept = at % 2 == 0 ? before[0][at][i] : 0;
        ASSERT_EQ(result[i], kept ^ (common[i] & factor[i])) << "product " << k;
      }
    }
  }
}

TEST(Boolean, CostEqualsTheLedger) {
  const Both<Bits> a = share_bits(random_bits(kLargestN));
  Both<Bits> result{Bits(kLargestN), Bits(kLargestN)};
  expect_costs_equal([&](i64 n) -> std::vector<CostRow> {
    const auto in = [&, n](ot::Party& p) { return std::span(a[p.rank]).first(n); };
    const auto out = [&, n](ot::Party& p) { return std::span(result[p.rank]).first(n); };
    return {
        {[=](ot::Party& p) { and_bits(p, in(p), in(p), out(p)); },
         [n](ot::CostMeter& m) { cost_and_bits(m, n); }},
        {[=](ot::Party& p) { and_strings(p, in(p), in(p), 5, out(p)); },
         [n](ot::CostMeter& m) { cost_and_strings(m, n, 5); }},
        {[=](ot::Party& p) { and_private(p, in(p), out(p)); },
         [n](ot::CostMeter& m) { cost_and_private(m, n); }},
    };
  });
}

TEST(Boolean, RefusesBadArguments) {
  run_parties({}, [](ot::Party& party) {
    const Bits a(3), wrong(2);
    Bits out(3);
    EXPECT_THROW(and_bits(party, a, wrong, out), InvalidArgument);
    EXPECT_THROW(and_strings(party, a, a, 9, out), InvalidArgument);
    EXPECT_THROW(and_private(party, wrong, out), InvalidArgument);
  });
}

}  // namespace
}  // namespace privml::twopc
