// SPDX-License-Identifier: Apache-2.0
#include "twopc/compare/millionaires.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "twopc/testing/parties.h"

namespace privml {
namespace {

using namespace privml::testing;

void check_plain(const OtKind& kind, const Both<Words>& x, int bits) {
  const std::size_t n = x[0].size();
  Both<Bits> greater{Bits(n), Bits(n)};
  run_parties(kind,
              [&](Party& party) { millionaires(party, x[party.rank], bits, greater[party.rank]); });
  const Bits result = reconstruct_bits(greater);
  for (std::size_t i = 0; i < n; ++i) {
    const u64 a = x[0][i] & low_mask(bits), b = x[1][i] & low_mask(bits);
    ASSERT_EQ(result[i], a > b) << a << " > " << b << " in " << bits << " bits";
  }
}

void check_equality(const OtKind& kind, const Both<Words>& x, int bits) {
  const std::size_t n = x[0].size();
  Both<Bits> greater{Bits(n), Bits(n)}, equal = greater;
  run_parties(kind, [&](Party& party) {
    const int rank = party.rank;
    millionaires_with_equality(party, x[rank], bits, greater[rank], equal[rank]);
  });
  const Bits g = reconstruct_bits(greater), e = reconstruct_bits(equal);
  for (std::size_t i = 0; i < n; ++i) {
    const u64 a = x[0][i] & low_mask(bits), b = x[1][i] & low_mask(bits);
    ASSERT_EQ(g[i], a > b) << a << " > " << b << " in " << bits << " bits";
    ASSERT_EQ(e[i], a == b) << a << " = " << b << " in " << bits << " bits";
  }
}

void check_split(const OtKind& kind, const Both<Words>& x, int bits, int split) {
  const std::size_t n = x[0].size();
  Both<Bits> low{Bits(n), Bits(n)}, greater = low;
  run_parties(kind, [&](Party& party) {
    const int rank = party.rank;
    millionaires_split(party, x[rank], bits, split, low[rank], greater[rank]);
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

TEST(Millionaires, SoftSpoken) {
  for (int k : {1, 2, 8}) check_plain({false, k}, close_pairs(300, 32), 32);
  check_equality({false, 4}, close_pairs(300, 64), 64);
  check_split({false, 4}, close_pairs(300, 37), 37, 13);
}

TEST(Millionaires, NothingToDo) {
  Both<Bits> none;
  run_parties({}, [&](Party& party) { millionaires(party, {}, 32, none[party.rank]); });
}

TEST(Millionaires, CostEqualsTheLedger) {
  const Both<Words> x = close_pairs(kLargestN, 32);
  Both<Bits> a{Bits(kLargestN), Bits(kLargestN)}, b = a;
  expect_costs_equal([&](i64 n) -> std::vector<CostRow> {
    const auto in = [&, n](Party& p) { return std::span(x[p.rank]).first(n); };
    const auto out = [n](Both<Bits>& bits, Party& p) { return std::span(bits[p.rank]).first(n); };
    return {
        {[=, &a](Party& p) { millionaires(p, in(p), 32, out(a, p)); },
         [n](CostMeter& m) { cost_millionaires(m, n, 32); }},
        {[=, &a](Party& p) { millionaires(p, in(p), 5, out(a, p)); },
         [n](CostMeter& m) { cost_millionaires(m, n, 5); }},
        {[=, &a, &b](Party& p) { millionaires_with_equality(p, in(p), 31, out(a, p), out(b, p)); },
         [n](CostMeter& m) { cost_millionaires_with_equality(m, n, 31); }},
        {[=, &a, &b](Party& p) { millionaires_split(p, in(p), 30, 13, out(a, p), out(b, p)); },
         [n](CostMeter& m) { cost_millionaires_split(m, n, 30, 13); }},
    };
  });
}

TEST(Millionaires, RefusesBadArguments) {
  run_parties({}, [](Party& party) {
    const Words x(3);
    Bits out(3), wrong(2);
    EXPECT_THROW(millionaires(party, x, 0, out), InvalidArgument);
    EXPECT_THROW(millionaires(party, x, 65, out), InvalidArgument);
    EXPECT_THROW(millionaires(party, x, 8, wrong), InvalidArgument);
    EXPECT_THROW(millionaires_split(party, x, 8, 8, out, out), InvalidArgument);
    EXPECT_THROW(millionaires_split(party, x, 8, 0, out, out), InvalidArgument);
  });
}

}  // namespace
}  // namespace privml
