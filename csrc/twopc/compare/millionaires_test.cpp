// SPDX-License-Identifier: Apache-2.0
#include "twopc/compare/millionaires.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "twopc/compare/comparison.h"
#include "twopc/testing/parties.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

// Over a slow link chunks are `factor` times as long, and digits are joined by threes.
void check_plain(const OtKind& kind, const Both<Words>& x, int bits, i64 factor = 1) {
  const std::size_t n = x[0].size();
  Both<Bits> greater{Bits(n), Bits(n)};
  run_parties(kind, [&](ot::Party& party) {
    party.chunk_factor = factor;
    millionaires(party, x[party.rank], bits, greater[party.rank]);
  });
  const Bits result = reconstruct_bits(greater);
  for (std::size_t i = 0; i < n; ++i) {
    const u64 a = x[0][i] & low_mask(bits), b = x[1][i] & low_mask(bits);
    ASSERT_EQ(result[i], a > b) << a << " > " << b << " in " << bits << " bits";
  }
}

void check_equality(const OtKind& kind, const Both<Words>& x, int bits, i64 factor = 1) {
  const std::size_t n = x[0].size();
  Both<Bits> greater{Bits(n), Bits(n)}, equal = greater;
  run_parties(kind, [&](ot::Party& party) {
    const int rank = party.rank;
    party.chunk_factor = factor;
    compare_in_chunks(party, {bits, 0, true}, x[rank], 0, {greater[rank], equal[rank], {}});
  });
  const Bits g = reconstruct_bits(greater), e = reconstruct_bits(equal);
  for (std::size_t i = 0; i < n; ++i) {
    const u64 a = x[0][i] & low_mask(bits), b = x[1][i] & low_mask(bits);
    ASSERT_EQ(g[i], a > b) << a << " > " << b << " in " << bits << " bits";
    ASSERT_EQ(e[i], a == b) << a << " = " << b << " in " << bits << " bits";
  }
}

void check_split(const OtKind& kind, const Both<Words>& x, int bits, int split, i64 factor = 1) {
  const std::size_t n = x[0].size();
  Both<Bits> low{Bits(n), Bits(n)}, greater = low;
  run_parties(kind, [&](ot::Party& party) {
    const int rank = party.rank;
    party.chunk_factor = factor;
    compare_in_chunks(party, {bits, split}, x[rank], 0, {greater[rank], {}, low[rank]});
  });
  const Bits l = reconstruct_bits(low), g = reconstruct_bits(greater);
  for (std::size_t i = 0; i < n; ++i) {
    const u64 a = x[0][i] & low_mask(bits), b = x[1][i] & low_mask(bits);
    ASSERT_EQ(g[i], a > b) << a << " > " << b << " in " << bits << " bits, split " << split;
    ASSERT_EQ(l[i], (a & low_mask(split)) > (b & low_mask(split)))
        << a << ", " << b << ", " << split;
  }
}

// Random pairs, many of them equal or equal in long prefixes.
Both<Words> close_pairs(i64 n, int bits) {
  Both<Words> x{random_words(n, bits, 1), random_words(n, bits, 2)};
  for (i64 i = 0; i < n; ++i) {
    if (i % 2 == 0) x[1][i] = x[0][i] ^ (x[1][i] & low_mask(static_cast<int>(i / 2) % (bits + 1)));
  }
  return x;
}

TEST(Millionaires, ExhaustiveAtSmallWidths) {
  for (int bits = 1; bits <= 6; ++bits) {
    const Both<Words> x = all_share_pairs(bits);
    check_plain({}, x, bits);
    check_equality({}, x, bits);
    for (int split = 1; split < bits; ++split) check_split({}, x, bits, split);
  }
}

TEST(Millionaires, RandomAtEveryWidth) {
  for (int bits = 7; bits <= 64; ++bits) {
    Both<Words> x = close_pairs(300, bits);
    add_noise_above(x, bits);
    check_plain({}, x, bits);
    check_equality({}, x, bits);
    for (int split : {1, bits / 3, bits / 2, bits - 1}) check_split({}, x, bits, split);
  }
}

TEST(Millionaires, OverASlowLink) {
  for (int bits : {1, 4, 6, 7}) {
    const Both<Words> x = all_share_pairs(bits);
    check_plain({}, x, bits, 8);
    check_equality({}, x, bits, 8);
    for (int split = 1; split < bits; ++split) check_split({}, x, bits, split, 8);
  }
  for (int bits = 8; bits <= 64; ++bits) {
    const Both<Words> x = close_pairs(300, bits);
    check_plain({}, x, bits, 8);
    check_equality({}, x, bits, 8);
    for (int split : {1, bits / 3, bits / 2, bits - 1}) check_split({}, x, bits, split, 8);
  }
}

// 16 bits take one level of joins, 32 bits two.
TEST(Millionaires, CostEqualsTheLedgerOverASlowLink) {
  for (const auto& [bits, depth] : {std::pair{16, 3}, {32, 4}}) {
    for (i64 n : {1, 7, 1000, 70000}) {
      SCOPED_TRACE(::testing::Message() << bits << " bits, n = " << n);
      const Both<Words> x = close_pairs(n, bits);
      const Outcome outcome = run_parties({}, [&](ot::Party& party) {
        party.chunk_factor = 8;
        Bits greater(n), equal(n);
        millionaires(party, x[party.rank], bits, greater);
        compare_in_chunks(party, {bits, 0, true}, x[party.rank], 0, {greater, equal, {}});
        compare_in_chunks(party, {bits, bits / 3}, x[party.rank], 0, {greater, {}, equal});
      });
      expect_cost_equals(outcome, [&](ot::CostMeter& meter) {
        meter.chunk_factor = 8;
        cost_millionaires(meter, n, bits);
        if (n <= 1000) {
          EXPECT_EQ(std::max(meter.depth[0], meter.depth[1]), depth);
        }
        cost_compare_in_chunks(meter, {bits, 0, true}, n);
        cost_compare_in_chunks(meter, {bits, bits / 3}, n);
      });
    }
  }
}

TEST(Millionaires, SoftSpoken) {
  for (int k : {1, 2, 8}) check_plain({false, k}, close_pairs(300, 32), 32);
  check_equality({false, 4}, close_pairs(300, 64), 64);
  check_split({false, 4}, close_pairs(300, 37), 37, 13);
}

TEST(Millionaires, NothingToDo) {
  Both<Bits> none;
  run_parties({}, [&](ot::Party& party) { millionaires(party, {}, 32, none[party.rank]); });
}

TEST(Millionaires, CostEqualsTheLedger) {
  const Both<Words> x = close_pairs(kLargestN, 32);
  Both<Bits> a{Bits(kLargestN), Bits(kLargestN)}, b = a;
  expect_costs_equal([&](i64 n) -> std::vector<CostRow> {
    const auto in = [&, n](ot::Party& p) { return std::span(x[p.rank]).first(n); };
    const auto out = [n](Both<Bits>& bits, ot::Party& p) {
      return std::span(bits[p.rank]).first(n);
    };
    return {
        {[=, &a](ot::Party& p) { millionaires(p, in(p), 32, out(a, p)); },
         [n](ot::CostMeter& m) { cost_millionaires(m, n, 32); }},
        {[=, &a](ot::Party& p) { millionaires(p, in(p), 5, out(a, p)); },
         [n](ot::CostMeter& m) { cost_millionaires(m, n, 5); }},
        {[=, &a, &b](ot::Party& p) {
           compare_in_chunks(p, {31, 0, true}, in(p), 0, {out(a, p), out(b, p), {}});
         },
         [n](ot::CostMeter& m) { cost_compare_in_chunks(m, {31, 0, true}, n); }},
        {[=, &a, &b](ot::Party& p) {
           compare_in_chunks(p, {30, 13}, in(p), 0, {out(b, p), {}, out(a, p)});
         },
         [n](ot::CostMeter& m) { cost_compare_in_chunks(m, {30, 13}, n); }},
    };
  });
}

TEST(Millionaires, RefusesBadArguments) {
  run_parties({}, [](ot::Party& party) {
    const Words x(3);
    Bits out(3), wrong(2);
    EXPECT_THROW(millionaires(party, x, 0, out), InvalidArgument);
    EXPECT_THROW(millionaires(party, x, 65, out), InvalidArgument);
    EXPECT_THROW(millionaires(party, x, 8, wrong), InvalidArgument);
    EXPECT_THROW(compare_in_chunks(party, {8, 8}, x, 0, {out, {}, out}), InvalidArgument);
  });
}

}  // namespace
}  // namespace privml::twopc
