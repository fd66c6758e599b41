// SPDX-License-Identifier: Apache-2.0
// truncation.h and extension.h.
#include "twopc/width/truncation.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "twopc/testing/parties.h"
#include "twopc/width/extension.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

using Protocol = void (*)(ot::Party&, std::span<const u64>, int, int, std::span<u64>);
using Cost = void (*)(ot::CostMeter&, i64, int, int);

Words run(const OtKind& kind, Protocol protocol, const Both<Words>& x, int first, int second,
          int out_bits) {
  const std::size_t n = x[0].size();
  Both<Words> out{Words(n), Words(n)};
  run_parties(kind, [&](ot::Party& p) { protocol(p, x[p.rank], first, second, out[p.rank]); });
  return reconstruct(out, out_bits);
}

// The pairs whose sum has a most significant bit of 0.
Both<Words> nonnegative(const Both<Words>& x, int bits) {
  Both<Words> chosen;
  for (std::size_t i = 0; i < x[0].size(); ++i) {
    if ((x[0][i] + x[1][i]) >> (bits - 1) & 1) continue;
    for (int r : {0, 1}) chosen[r].push_back(x[r][i]);
  }
  return chosen;
}

void check_truncation(const OtKind& kind, const Both<Words>& x, int bits, int shift) {
  SCOPED_TRACE(::testing::Message() << bits << " bits, shift " << shift);
  const Words arithmetic = run(kind, truncate_arithmetic, x, bits, shift, bits);
  const Words reduced = run(kind, truncate_reduce, x, bits, shift, bits - shift);
  for (std::size_t i = 0; i < x[0].size(); ++i) {
    const u64 value = (x[0][i] + x[1][i]) & low_mask(bits);
    const i64 number = to_signed(value, bits);
    ASSERT_EQ(arithmetic[i], static_cast<u64>(number >> shift) & low_mask(bits)) << number;
    ASSERT_EQ(reduced[i], value >> shift) << value;
  }
  const Both<Words> chosen = nonnegative(x, bits);
  const Words cheap = run(kind, truncate_nonnegative, chosen, bits, shift, bits);
  for (std::size_t i = 0; i < chosen[0].size(); ++i) {
    const u64 value = (chosen[0][i] + chosen[1][i]) & low_mask(bits);
    ASSERT_EQ(cheap[i], value >> shift) << value;
  }
  if (shift == 0) return;
  const Words rounded = run(kind, round_nonnegative, chosen, bits, shift, bits);
  for (std::size_t i = 0; i < chosen[0].size(); ++i) {
    const u64 value = (chosen[0][i] + chosen[1][i]) & low_mask(bits);
    ASSERT_EQ(rounded[i], (value >> shift) + (value >> (shift - 1) & 1)) << value;
  }
}

void check_extension(const OtKind& kind, const Both<Words>& x, int from, int to) {
  SCOPED_TRACE(::testing::Message() << from << " to " << to << " bits");
  const Words zero = run(kind, zero_extend, x, from, to, to);
  const Words sign = run(kind, sign_extend, x, from, to, to);
  for (std::size_t i = 0; i < x[0].size(); ++i) {
    const u64 value = (x[0][i] + x[1][i]) & low_mask(from);
    ASSERT_EQ(zero[i], value);
    ASSERT_EQ(sign[i], static_cast<u64>(to_signed(value, from)) & low_mask(to)) << value;
  }
  const Both<Words> chosen = nonnegative(x, from);
  const Words cheap = run(kind, extend_nonnegative, chosen, from, to, to);
  for (std::size_t i = 0; i < chosen[0].size(); ++i) {
    ASSERT_EQ(cheap[i], (chosen[0][i] + chosen[1][i]) & low_mask(from));
  }
}

TEST(Truncation, ExhaustiveAtSmallWidths) {
  for (int bits = 1; bits <= 6; ++bits) {
    const Both<Words> x = all_share_pairs(bits);
    for (int shift = 0; shift < bits; ++shift) check_truncation({}, x, bits, shift);
  }
}

TEST(Truncation, RandomAtLargerWidths) {
  for (int bits : {12, 32, 37, 64}) {
    Both<Words> x = share(random_words(400, bits), bits);
    add_noise_above(x, bits);
    for (int shift : {1, 4, 7, 11}) check_truncation({}, x, bits, shift);
    for (int shift : {bits / 2, bits - 2, bits - 1}) check_truncation({}, x, bits, shift);
  }
}

// Of carries by tables; with results of more bits than these take, by comparisons.
TEST(Truncation, OverASlowLink) {
  const auto check = [](const OtKind& kind, const Both<Words>& x, int bits, int shift) {
    const i64 n = std::ssize(x[0]);
    const auto cost = [&](ot::CostMeter& m) {
      m.chunk_factor = 32;
      cost_truncate_reduce(m, n, bits, shift);
      if (kind.ideal) {
        EXPECT_EQ(m.depth[0] == 2, shift <= 8 || bits < 64) << shift;
      }
    };
    Both<Words> out{Words(n), Words(n)};
    const Outcome outcome = run_parties(kind, [&](ot::Party& p) {
      p.chunk_factor = 32;
      truncate_reduce(p, x[p.rank], bits, shift, out[p.rank]);
    });
    const Words reduced = reconstruct(out, bits - shift);
    for (i64 i = 0; i < n; ++i)
      ASSERT_EQ(reduced[i], ((x[0][i] + x[1][i]) & low_mask(bits)) >> shift)
          << bits << " " << shift;
    expect_cost_equals(outcome, cost);
  };
  for (int bits = 2; bits <= 7; ++bits)
    for (int shift = 1; shift < bits; ++shift) check({}, all_share_pairs(bits), bits, shift);
  for (int bits : {12, 35, 64})
    for (int shift : {1, 5, 7, 8, 9, 11, 20}) {
      if (shift >= bits) continue;
      Both<Words> x = share(random_words(61, bits), bits);
      add_noise_above(x, bits);
      check({}, x, bits, shift);
      check({false, 4}, x, bits, shift);
    }
}

TEST(Truncation, SoftSpoken) {
  check_truncation({false, 4}, share(random_words(200, 32), 32), 32, 12);
  check_truncation({false, 8}, share(random_words(200, 64), 64), 64, 16);
}

TEST(Extension, ExhaustiveAtSmallWidths) {
  for (int from = 1; from <= 6; ++from) {
    const Both<Words> x = all_share_pairs(from);
    for (int to : {from, from + 1, from + 5, 32, 64}) check_extension({}, x, from, to);
  }
}

TEST(Extension, RandomAtLargerWidths) {
  const std::vector<std::pair<int, int>> widths{{16, 32}, {32, 37}, {37, 64}, {63, 64}, {64, 64}};
  for (const auto& [from, to] : widths) {
    Both<Words> x = share(random_words(400, from), from);
    add_noise_above(x, from);
    check_extension({}, x, from, to);
  }
}

TEST(Extension, OverASlowLink) {
  const auto check = [](const Both<Words>& x, int from, int to) {
    const i64 n = std::ssize(x[0]);
    Both<Words> out{Words(n), Words(n)};
    const Outcome outcome = run_parties({}, [&](ot::Party& p) {
      p.chunk_factor = 32;
      sign_extend(p, x[p.rank], from, to, out[p.rank]);
    });
    const Words extended = reconstruct(out, to);
    for (i64 i = 0; i < n; ++i) {
      const i64 value = to_signed((x[0][i] + x[1][i]) & low_mask(from), from);
      ASSERT_EQ(extended[i], static_cast<u64>(value) & low_mask(to)) << from << " to " << to;
    }
    expect_cost_equals(outcome, [&](ot::CostMeter& m) {
      m.chunk_factor = 32;
      cost_extend(m, n, from, to);
    });
  };
  for (int from = 1; from <= 6; ++from)
    for (int to : {from + 1, from + 5, 64}) check(all_share_pairs(from), from, to);
  for (const auto& [from, to] : {std::pair{13, 21}, {21, 22}, {32, 48}, {37, 64}, {63, 64}})
    check(share(random_words(61, from), from), from, to);
}

TEST(Extension, SoftSpoken) {
  check_extension({false, 4}, share(random_words(200, 16), 16), 16, 32);
}

TEST(Truncation, CostEqualsTheLedger) {
  struct Row {
    Protocol protocol;
    Cost cost;
    int first, second;
  };
  const std::vector<Row> rows{
      {truncate_arithmetic, cost_truncate, 32, 12},
      {truncate_arithmetic, cost_truncate, 33, 1},
      {truncate_nonnegative, cost_truncate_nonnegative, 32, 12},
      {round_nonnegative, cost_truncate_nonnegative, 32, 12},
      {truncate_reduce, cost_truncate_reduce, 32, 31},
      {truncate_reduce, cost_truncate_reduce, 32, 12},
      {truncate_reduce, cost_truncate_reduce, 32, 0},
      {zero_extend, cost_extend, 16, 32},
      {sign_extend, cost_extend, 7, 8},
      {extend_nonnegative, cost_extend_nonnegative, 16, 32},
  };
  const Both<Words> x = share(random_words(kLargestN, 64), 64);
  Both<Words> out{Words(kLargestN), Words(kLargestN)};
  expect_costs_equal([&](i64 n) {
    std::vector<CostRow> costs;
    for (const Row& row : rows) {
      costs.push_back({[&, n, row](ot::Party& p) {
                         row.protocol(p, std::span(x[p.rank]).first(n), row.first, row.second,
                                      std::span(out[p.rank]).first(n));
                       },
                       [n, row](ot::CostMeter& m) { row.cost(m, n, row.first, row.second); }});
    }
    return costs;
  });
}

TEST(Truncation, RefusesBadArguments) {
  run_parties({}, [](ot::Party& party) {
    const Words x(3);
    Words out(3), wrong(2);
    EXPECT_THROW(truncate_arithmetic(party, x, 8, 8, out), InvalidArgument);
    EXPECT_THROW(truncate_arithmetic(party, x, 8, -1, out), InvalidArgument);
    EXPECT_THROW(truncate_reduce(party, x, 65, 1, out), InvalidArgument);
    EXPECT_THROW(truncate_nonnegative(party, x, 8, 1, wrong), InvalidArgument);
    EXPECT_THROW(zero_extend(party, x, 9, 8, out), InvalidArgument);
    EXPECT_THROW(sign_extend(party, x, 0, 8, out), InvalidArgument);
    EXPECT_THROW(extend_nonnegative(party, x, 8, 65, out), InvalidArgument);
  });
}

}  // namespace
}  // namespace privml::twopc
