// SPDX-License-Identifier: Apache-2.0
// relu.h and maximum.h.
#include "twopc/compare/maximum.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "twopc/compare/relu.h"
#include "twopc/testing/parties.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

void check_relu(const OtKind& kind, const Both<Words>& x, int bits) {
  const std::size_t n = x[0].size();
  Both<Words> out{Words(n), Words(n)};
  Both<Bits> sign{Bits(n), Bits(n)};
  run_parties(kind, [&](ot::Party& p) { relu(p, x[p.rank], bits, out[p.rank], sign[p.rank]); });
  const Words result = reconstruct(out, bits);
  const Bits nonnegative = reconstruct_bits(sign);
  for (std::size_t i = 0; i < n; ++i) {
    const u64 value = (x[0][i] + x[1][i]) & low_mask(bits);
    const bool keep = to_signed(value, bits) >= 0;
    ASSERT_EQ(result[i], keep ? value : 0) << value << " in " << bits << " bits";
    ASSERT_EQ(nonnegative[i], keep);
  }
}

TEST(Relu, ExhaustiveAtSmallWidths) {
  for (int bits = 1; bits <= 6; ++bits) check_relu({}, all_share_pairs(bits), bits);
}

TEST(Relu, RandomAtLargerWidths) {
  for (int bits : {7, 16, 31, 32, 33, 37, 63, 64}) {
    Both<Words> x = share(random_words(500, bits), bits);
    add_noise_above(x, bits);
    check_relu({}, x, bits);
  }
  for (int k : {1, 2, 4, 8}) check_relu({false, k}, share(random_words(300, 32), 32), 32);
}

// Random values in the range that maximum states, with many ties.
Words bounded_words(i64 n, int bits, u64 seed) {
  const i64 bound = i64{1} << (bits - 2);
  Words words = random_words(n, bits, seed);
  for (i64 i = 0; i < n; ++i) {
    i64 value = to_signed(words[i], bits) >> 2;
    if (i % 3 == 0) value %= 2;
    if (i % 7 == 0) value = bound - 1;
    if (i % 11 == 0) value = 1 - bound;
    words[i] = static_cast<u64>(value) & low_mask(bits);
  }
  return words;
}

TEST(Maximum, ExhaustiveAtFiveBits) {
  const int bits = 5;
  Words a, b;
  for (i64 x = -7; x <= 7; ++x) {
    for (i64 y = -7; y <= 7; ++y) {
      for (int copy = 0; copy < 32; ++copy) {
        a.push_back(static_cast<u64>(x) & low_mask(bits));
        b.push_back(static_cast<u64>(y) & low_mask(bits));
      }
    }
  }
  const Both<Words> shares_a = share(a, bits, 1), shares_b = share(b, bits, 2);
  Both<Words> out{Words(a.size()), Words(a.size())};
  run_parties(
      {}, [&](ot::Party& p) { maximum(p, shares_a[p.rank], shares_b[p.rank], bits, out[p.rank]); });
  const Words result = reconstruct(out, bits);
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(to_signed(result[i], bits), std::max(to_signed(a[i], bits), to_signed(b[i], bits)));
  }
}

void check_windows(const OtKind& kind, i64 n, i64 window, int bits, i64 factor = 1) {
  SCOPED_TRACE(::testing::Message() << n << " windows of " << window << ", " << bits << " bits");
  const Words values = bounded_words(n * window, bits, window);
  const Both<Words> x = share(values, bits, 3);
  Both<Words> plain{Words(n), Words(n)}, marked = plain, index = plain;
  Both<Bits> hot{Bits(n * window), Bits(n * window)};
  run_parties(kind, [&](ot::Party& p) {
    const int r = p.rank;
    p.chunk_factor = factor;
    maximum_windows(p, x[r], window, bits, plain[r]);
    maximum_windows_one_hot(p, x[r], window, bits, marked[r], hot[r]);
    argmax(p, x[r], window, bits, index[r]);
  });
  const Words a = reconstruct(plain, bits), b = reconstruct(marked, bits),
              c = reconstruct(index, bits);
  const Bits h = reconstruct_bits(hot);
  for (i64 i = 0; i < n; ++i) {
    i64 best = 0;
    for (i64 j = 1; j < window; ++j) {
      if (to_signed(values[i * window + j], bits) > to_signed(values[i * window + best], bits)) {
        best = j;
      }
    }
    ASSERT_EQ(a[i], values[i * window + best]);
    ASSERT_EQ(b[i], a[i]);
    ASSERT_EQ(c[i], static_cast<u64>(best));
    for (i64 j = 0; j < window; ++j) ASSERT_EQ(h[i * window + j], j == best) << "position " << j;
  }
}

TEST(Maximum, Windows) {
  for (i64 window : {1, 2, 3, 4, 5, 7, 9, 16, 25, 33}) check_windows({}, 60, window, 32);
  for (int bits : {8, 37, 64}) check_windows({}, 200, 6, bits);
  check_windows({false, 4}, 100, 4, 32);
}

// Of four at once; all windows of few bits.
TEST(Maximum, OverASlowLink) {
  for (i64 window : {1, 2, 3, 4, 5, 6, 7, 8, 13, 16, 17, 32, 33})
    check_windows({}, 20, window, 16, 32);
  for (int bits : {8, 37, 64}) check_windows({}, 100, 6, bits, 32);
  check_windows({false, 4}, 60, 11, 32, 32);
  const int bits = 4;
  Words values;
  for (i64 window = 0; window < 7 * 7 * 7 * 7; ++window)
    for (i64 place = 0, rest = window; place < 4; ++place, rest /= 7)
      values.push_back(static_cast<u64>(rest % 7 - 3) & low_mask(bits));
  const i64 n = std::ssize(values) / 4;
  const Both<Words> x = share(values, bits, 5);
  Both<Words> out{Words(n), Words(n)};
  run_parties({}, [&](ot::Party& p) {
    p.chunk_factor = 32;
    maximum_windows(p, x[p.rank], 4, bits, out[p.rank]);
  });
  const Words result = reconstruct(out, bits);
  for (i64 i = 0; i < n; ++i) {
    i64 best = -4;
    for (i64 place = 0; place < 4; ++place)
      best = std::max(best, to_signed(values[4 * i + place], bits));
    ASSERT_EQ(to_signed(result[i], bits), best) << "window " << i;
  }
}

TEST(Maximum, OverASlowLinkInFewerMessages) {
  const i64 n = 128, window = 32;
  const int bits = 13;
  const Both<Words> x = share(bounded_words(n * window, bits, 1), bits);
  for (const auto& [factor, depth] : {std::pair<i64, i64>{1, 25}, {32, 14}}) {
    Both<Words> out{Words(n), Words(n)};
    const Outcome outcome = run_parties({}, [&](ot::Party& p) {
      p.chunk_factor = factor;
      maximum_windows(p, x[p.rank], window, bits, out[p.rank]);
    });
    expect_cost_equals(outcome, [&](ot::CostMeter& m) {
      m.chunk_factor = factor;
      cost_maximum_windows(m, n, window, bits);
      EXPECT_EQ(m.depth[0], depth);
    });
  }
}

TEST(Maximum, CostEqualsTheLedger) {
  const i64 largest = 4 * ceil_div(kLargestN, 4);
  const Both<Words> x = share(random_words(largest, 32), 32);
  Both<Words> result{Words(largest), Words(largest)};
  Both<Bits> marks{Bits(largest), Bits(largest)};
  expect_costs_equal([&](i64 n) -> std::vector<CostRow> {
    const i64 windows = ceil_div(n, 4);
    const auto in = [&](ot::Party& p, i64 count) { return std::span(x[p.rank]).first(count); };
    const auto out = [&](ot::Party& p, i64 count) {
      return std::span(result[p.rank]).first(count);
    };
    const auto hot = [&](ot::Party& p, i64 count) { return std::span(marks[p.rank]).first(count); };
    return {
        {[=](ot::Party& p) { relu(p, in(p, n), 32, out(p, n)); },
         [=](ot::CostMeter& m) { cost_relu(m, n, 32); }},
        {[=](ot::Party& p) { relu(p, in(p, n), 1, out(p, n)); },
         [=](ot::CostMeter& m) { cost_relu(m, n, 1); }},
        {[=](ot::Party& p) { maximum(p, in(p, n), in(p, n), 20, out(p, n)); },
         [=](ot::CostMeter& m) { cost_maximum(m, n, 20); }},
        {[=](ot::Party& p) { maximum_windows(p, in(p, 4 * windows), 4, 16, out(p, windows)); },
         [=](ot::CostMeter& m) { cost_maximum_windows(m, windows, 4, 16); }},
        {[=](ot::Party& p) {
           maximum_windows_one_hot(p, in(p, 4 * windows), 4, 16, out(p, windows),
                                   hot(p, 4 * windows));
         },
         [=](ot::CostMeter& m) { cost_maximum_windows_one_hot(m, windows, 4, 16); }},
        {[=](ot::Party& p) { argmax(p, in(p, 4 * windows), 4, 16, out(p, windows)); },
         [=](ot::CostMeter& m) { cost_argmax(m, windows, 4, 16); }},
    };
  });
}

TEST(Maximum, RefusesBadArguments) {
  run_parties({}, [](ot::Party& party) {
    const Words x(6);
    Words out(3), wrong(2);
    Bits hot(5);
    EXPECT_THROW(relu(party, x, 8, out), InvalidArgument);
    EXPECT_THROW(relu(party, out, 0, out), InvalidArgument);
    EXPECT_THROW(maximum(party, x, x, 8, out), InvalidArgument);
    EXPECT_THROW(maximum_windows(party, x, 2, 1, out), InvalidArgument);
    EXPECT_THROW(maximum_windows(party, x, 2, 8, wrong), InvalidArgument);
    EXPECT_THROW(maximum_windows(party, x, 0, 8, out), InvalidArgument);
    EXPECT_THROW(maximum_windows_one_hot(party, x, 2, 8, out, hot), InvalidArgument);
    EXPECT_THROW(argmax(party, Words(15), 5, 2, out), InvalidArgument);
  });
}

}  // namespace
}  // namespace privml::twopc
