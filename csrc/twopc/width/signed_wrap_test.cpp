// SPDX-License-Identifier: Apache-2.0
// signed_wrap.h, bounded.h and division.h.
#include "twopc/width/signed_wrap.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "twopc/testing/parties.h"
#include "twopc/width/bounded.h"
#include "twopc/width/division.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

i64 number(const Both<Words>& x, std::size_t i, int bits) {
  return to_signed((x[0][i] + x[1][i]) & low_mask(bits), bits);
}

// The pairs whose number keeps the bound.
Both<Words> within(const Both<Words>& x, int bits, u64 bound) {
  Both<Words> chosen;
  for (std::size_t i = 0; i < x[0].size(); ++i) {
    const u64 sum = (x[0][i] + x[1][i]) & low_mask(bits);
    if (sum >= bound && sum <= low_mask(bits) - bound) continue;
    for (int r : {0, 1}) chosen[r].push_back(x[r][i]);
  }
  return chosen;
}

// Random numbers within the bound, its ends among them.
Both<Words> random_within(i64 count, int bits, u64 bound, u64 seed) {
  std::mt19937_64 random(seed);
  Words values(count);
  for (i64 i = 0; i < count; ++i) {
    const u64 offset = i == 0 ? 0 : i == 1 ? 2 * (bound - 1) + 1 : i == 2 ? bound : random();
    const u64 span = bound == u64{1} << 63 ? 0 : 2 * bound;
    values[i] = ((span == 0 ? offset : offset % span) - bound) & low_mask(bits);
  }
  return share(values, bits, seed);
}

Words run(const OtKind& kind, const Both<Words>& x, int out_bits,
          const std::function<void(ot::Party&, std::span<const u64>, std::span<u64>)>& protocol) {
  const std::size_t n = x[0].size();
  Both<Words> out{Words(n), Words(n)};
  run_parties(kind, [&](ot::Party& p) { protocol(p, x[p.rank], out[p.rank]); });
  return reconstruct(out, out_bits);
}

void check_wrap(const OtKind& kind, const Both<Words>& x, int bits, u64 bound, int width) {
  SCOPED_TRACE(::testing::Message() << bits << " bits, bound " << bound << ", width " << width);
  const Words wraps = run(kind, x, width, [&](ot::Party& p, auto in, auto out) {
    signed_wrap(p, in, bits, bound, width, out);
  });
  for (std::size_t i = 0; i < wraps.size(); ++i) {
    const __int128 sum =
        static_cast<__int128>(x[0][i] & low_mask(bits)) + (x[1][i] & low_mask(bits));
    const __int128 excess = sum - number(x, i, bits);
    ASSERT_EQ(wraps[i], static_cast<u64>(excess >> bits) & low_mask(width))
        << x[0][i] << " + " << x[1][i];
  }
}

void check_widths(const OtKind& kind, const Both<Words>& x, int bits, u64 bound, int shift,
                  int to) {
  SCOPED_TRACE(::testing::Message() << bits << " bits, bound " << bound << ", shift " << shift);
  const Words truncated = run(kind, x, bits, [&](ot::Party& p, auto in, auto out) {
    truncate_bounded(p, in, bits, bound, shift, out);
  });
  const Words extended = run(kind, x, to, [&](ot::Party& p, auto in, auto out) {
    extend_bounded(p, in, bits, bound, to, out);
  });
  for (std::size_t i = 0; i < truncated.size(); ++i) {
    const i64 value = number(x, i, bits);
    ASSERT_EQ(truncated[i], static_cast<u64>(value >> shift) & low_mask(bits)) << value;
    ASSERT_EQ(extended[i], static_cast<u64>(value) & low_mask(to)) << value;
  }
  if (shift == 0) return;
  const Words rounded = run(kind, x, bits, [&](ot::Party& p, auto in, auto out) {
    round_bounded(p, in, bits, bound, shift, out);
  });
  for (std::size_t i = 0; i < rounded.size(); ++i) {
    const i64 value = number(x, i, bits);
    const u64 nearest = static_cast<u64>((value >> shift) + (value >> (shift - 1) & 1));
    ASSERT_EQ(rounded[i], nearest & low_mask(bits)) << value;
  }
}

void check_division(const OtKind& kind, const Both<Words>& x, int bits, u64 bound, u64 divisor) {
  SCOPED_TRACE(::testing::Message() << bits << " bits, bound " << bound << ", by " << divisor);
  const Words quotients = run(kind, x, bits, [&](ot::Party& p, auto in, auto out) {
    divide_bounded(p, in, bits, bound, divisor, out);
  });
  for (std::size_t i = 0; i < quotients.size(); ++i) {
    const __int128 value = number(x, i, bits), d = static_cast<__int128>(divisor);
    const __int128 floor = (value - ((value % d) + d) % d) / d;
    ASSERT_EQ(quotients[i], static_cast<u64>(floor) & low_mask(bits)) << number(x, i, bits);
  }
}

TEST(SignedWrap, EveryPairOfSharesAndEveryBoundAtSmallWidths) {
  for (int bits = 1; bits <= 6; ++bits) {
    Both<Words> pairs = all_share_pairs(bits);
    for (u64 bound = 1; bound <= u64{1} << (bits - 1); ++bound) {
      Both<Words> x = within(pairs, bits, bound);
      add_noise_above(x, bits);
      check_wrap({}, x, bits, bound, 2);
      if (bits == 5) check_widths({}, x, bits, bound, static_cast<int>(bound % 5), 9);
    }
  }
}

// With carries by a table, beside products of bits and before a comparison.
TEST(SignedWrap, RoundingOverASlowLink) {
  const auto check = [](const Both<Words>& x, int bits, u64 bound, int shift) {
    const i64 n = std::ssize(x[0]);
    Both<Words> out{Words(n), Words(n)};
    const Outcome outcome = run_parties({}, [&](ot::Party& p) {
      p.chunk_factor = 32;
      round_bounded(p, x[p.rank], bits, bound, shift, out[p.rank]);
    });
    const Words rounded = reconstruct(out, bits);
    for (i64 i = 0; i < n; ++i) {
      const i64 value = number(x, i, bits);
      const u64 nearest = static_cast<u64>((value >> shift) + (value >> (shift - 1) & 1));
      ASSERT_EQ(rounded[i], nearest & low_mask(bits)) << value;
    }
    expect_cost_equals(outcome, [&](ot::CostMeter& m) {
      m.chunk_factor = 32;
      cost_truncate_bounded(m, n, bits, bound, shift);
    });
  };
  for (u64 bound : {u64{3}, u64{11}, u64{16}})
    for (int shift = 1; shift < 5; ++shift)
      check(within(all_share_pairs(5), 5, bound), 5, bound, shift);
  for (int bits : {21, 37})
    for (u64 bound : {u64{1} << (bits - 1), u64{1} << (bits - 2), u64{500}})
      for (int shift : {7, 8, 10, 17}) check(random_within(70, bits, bound, 3), bits, bound, shift);
}

TEST(SignedWrap, RandomNumbersAtRealWidths) {
  for (int bits : {16, 32, 37, 63, 64}) {
    const u64 half = u64{1} << (bits - 1), eighth = half >> 2;
    for (u64 bound :
         {half, half - 1, half - (half >> 12), 3 * eighth, 3 * eighth - 1, half / 2, u64{5}}) {
      const Both<Words> x = random_within(1000, bits, bound, bound);
      check_wrap({false, 4}, x, bits, bound, 2);
      check_wrap({}, x, bits, bound, 40);
      check_widths({}, x, bits, bound, 12, 64);
      check_division({}, x, bits, bound, 1000);
      check_division({}, x, bits, bound, (half >> 3) - 5);
    }
  }
}

TEST(SignedWrap, DivisionByEveryDivisorAtSmallWidths) {
  for (int bits = 2; bits <= 5; ++bits) {
    const u64 half = u64{1} << (bits - 1);
    const Both<Words> pairs = all_share_pairs(bits);
    for (u64 bound : {half, half - half / 4, half / 2}) {
      for (u64 divisor = 1; divisor < half; ++divisor) {
        check_division({}, within(pairs, bits, bound), bits, bound, divisor);
      }
    }
  }
}

TEST(SignedWrap, PlansAsTheBoundAllows) {
  EXPECT_EQ(plan_signed_wrap(32, u64{1} << 30).products, 1);
  EXPECT_EQ(plan_signed_wrap(32, 3 * (u64{1} << 29) - 1).products, 3);
  EXPECT_EQ(plan_signed_wrap(32, 3 * (u64{1} << 29)).products, 3);
  EXPECT_EQ(plan_signed_wrap(32, 3 * (u64{1} << 29) + 1).compare_bits, 3);
  EXPECT_EQ(plan_signed_wrap(37, u64{1} << 36).compare_bits, 37);
  EXPECT_EQ(plan_signed_wrap(64, u64{1} << 63).compare_bits, 64);
}

TEST(SignedWrap, CostsEqualTheLedger) {
  expect_costs_equal([](i64 n) {
    const auto x = [n](int rank, int bits, u64 bound) {
      return random_within(n, bits, bound, 7)[rank];
    };
    std::vector<CostRow> rows;
    for (u64 bound : {u64{1} << 31, (u64{1} << 31) - 1000, u64{1} << 30}) {
      rows.push_back({[=](ot::Party& p) {
                        Words out(n);
                        signed_wrap(p, x(p.rank, 32, bound), 32, bound, 8, out);
                      },
                      [=](ot::CostMeter& m) { cost_signed_wrap(m, n, 32, bound, 8); }});
      rows.push_back({[=](ot::Party& p) {
                        Words out(n);
                        truncate_bounded(p, x(p.rank, 32, bound), 32, bound, 12, out);
                      },
                      [=](ot::CostMeter& m) { cost_truncate_bounded(m, n, 32, bound, 12); }});
      rows.push_back({[=](ot::Party& p) {
                        Words out(n);
                        extend_bounded(p, x(p.rank, 32, bound), 32, bound, 40, out);
                      },
                      [=](ot::CostMeter& m) { cost_extend_bounded(m, n, 32, bound, 40); }});
      rows.push_back({[=](ot::Party& p) {
                        Words out(n);
                        divide_bounded(p, x(p.rank, 32, bound), 32, bound, 1000, out);
                      },
                      [=](ot::CostMeter& m) { cost_divide_bounded(m, n, 32, bound, 1000); }});
    }
    rows.push_back({[=](ot::Party& p) {
                      Words out(n);
                      divide_bounded(p, x(p.rank, 64, 1000), 64, 1000, 10, out);
                    },
                    [=](ot::CostMeter& m) { cost_divide_bounded(m, n, 64, 1000, 10); }});
    return rows;
  });
}

TEST(SignedWrap, RefusesWrongArguments) {
  run_parties({}, [](ot::Party& p) {
    Words x(3), out(3), longer(4);
    EXPECT_THROW(signed_wrap(p, x, 8, 129, 2, out), InvalidArgument);
    EXPECT_THROW(signed_wrap(p, x, 8, 0, 2, out), InvalidArgument);
    EXPECT_THROW(signed_wrap(p, x, 65, 1, 2, out), InvalidArgument);
    EXPECT_THROW(signed_wrap(p, x, 8, 1, 65, out), InvalidArgument);
    EXPECT_THROW(signed_wrap(p, x, 8, 1, 2, longer), InvalidArgument);
    EXPECT_THROW(truncate_bounded(p, x, 8, 1, 8, out), InvalidArgument);
    EXPECT_THROW(extend_bounded(p, x, 8, 1, 7, out), InvalidArgument);
    EXPECT_THROW(divide_bounded(p, x, 8, 1, 128, out), InvalidArgument);
    EXPECT_THROW(divide_bounded(p, x, 8, 1, 0, out), InvalidArgument);
  });
}

}  // namespace
}  // namespace privml::twopc
