// SPDX-License-Identifier: Apache-2.0
#include "functions/float/rounding.h"

#include "functions/float/operation.h"
#include "functions/float/testing/functions.h"

namespace privml::floating {
namespace {

using namespace floating::testing;
using namespace twopc::testing;

// An operation on words of `bits` bits to words of `out_bits`.
using Operation =
    std::function<functions::RingShares(functions::Evaluator&, const functions::RingShares&)>;

Words run_operation(const Both<Words>& x, int bits, int out_bits, const Operation& operation) {
  const i64 n = std::ssize(x[0]);
  Both<Words> out{Words(n), Words(n)};
  const Outcome outcome = run_parties({}, [&](ot::Party& party) {
    functions::evaluate_chunks(
        party, n, kFloatChunk, [&](functions::Evaluator& evaluator, i64 begin) {
          const functions::RingShares in =
              evaluator.map(evaluator.n, bits, [&](i64 i) { return x[party.rank][begin + i]; });
          const functions::RingShares result = operation(evaluator, in);
          evaluator.local(evaluator.n, [&](i64 i) { out[party.rank][begin + i] = result[i]; });
        });
  });
  expect_cost_equals(outcome, [&](ot::CostMeter& meter) {
    functions::cost_chunks(meter, n, kFloatChunk, [&](functions::Evaluator& evaluator, i64) {
      operation(evaluator, evaluator.ring(evaluator.n));
    });
  });
  return reconstruct(out, out_bits);
}

// All pairs of shares of `bits` bits, and the sum of each.
struct Exhaustive {
  Both<Words> shares;
  Words sums;
  explicit Exhaustive(int bits) : shares(all_share_pairs(bits)) {
    for (std::size_t i = 0; i < shares[0].size(); ++i) {
      sums.push_back((shares[0][i] + shares[1][i]) & low_mask(bits));
    }
  }
};

TEST(FloatRounding, RoundsAllSharesAtEveryPlace) {
  for (int bits = 2; bits <= 6; ++bits) {
    const Exhaustive all(bits);
    for (int s = 1; s < bits; ++s) {
      const Words rounded =
          run_operation(all.shares, bits, bits - s, [&](functions::Evaluator& evaluator, auto& x) {
            return round_shift(evaluator, x, bits, s);
          });
      const Words sticky =
          run_operation(all.shares, bits, bits - s, [&](functions::Evaluator& evaluator, auto& x) {
            return truncate_sticky(evaluator, x, bits, s);
          });
      for (std::size_t i = 0; i < all.sums.size(); ++i) {
        const u64 x = all.sums[i], cut = x & low_mask(s);
        const double nearest = std::nearbyint(static_cast<double>(x) / static_cast<double>(1 << s));
        ASSERT_EQ(rounded[i], static_cast<u64>(nearest) & low_mask(bits - s)) << x << " " << s;
        ASSERT_EQ(sticky[i], (x >> s) | (cut != 0 ? 1 : 0)) << x << " " << s;
      }
    }
  }
}

// Numbers with their top bits set, to every shorter length.
TEST(FloatRounding, MantissasOfAllShares) {
  for (int bits = 4; bits <= 6; ++bits) {
    const Exhaustive all(bits);
    for (int q = 1; q + 1 < bits; ++q) {
      const Words mantissas =
          run_operation(all.shares, bits, q + 1, [&](functions::Evaluator& evaluator, auto& x) {
            return round_mantissa_shares(evaluator, x, bits, q).mantissa;
          });
      const Words carries =
          run_operation(all.shares, bits, 4, [&](functions::Evaluator& evaluator, auto& x) {
            return round_mantissa_shares(evaluator, x, bits, q, 4).carry_ring;
          });
      for (std::size_t i = 0; i < all.sums.size(); ++i) {
        if (all.sums[i] >> (bits - 1) == 0) continue;
        const FloatValue expected = round_mantissa(false, false, 0, all.sums[i], bits, q);
        ASSERT_EQ(mantissas[i], expected.mantissa) << all.sums[i] << " " << q;
        ASSERT_EQ(carries[i], static_cast<u64>(expected.exponent)) << all.sums[i] << " " << q;
      }
    }
  }
}

// Every exponent that the check takes, with a zero bit or without.
TEST(FloatRounding, CheckOfAllExponents) {
  const FloatFormat f{4, 3};
  Values values;
  for (int e = static_cast<int>(f.greatest()) - 31; e <= f.least() + 31; ++e) {
    for (const bool sign : {false, true}) {
      values.push_back({false, sign, e, 11});
      if (e <= f.greatest()) values.push_back({true, sign, e, 5});
    }
  }
  const i64 n = std::ssize(values);
  const Both<FloatVector> a = share_floats(values, f);
  Both<FloatVector> out{FloatVector(n), FloatVector(n)};
  run_parties({}, [&](ot::Party& party) {
    functions::evaluate_chunks(
        party, n, kFloatChunk, [&](functions::Evaluator& evaluator, i64 begin) {
          store_floats(evaluator,
                       check_float(evaluator, load_floats(evaluator, a[party.rank], f, begin), f),
                       out[party.rank], begin);
        });
  });
  const Values results = reconstruct_floats(out, f);
  for (i64 i = 0; i < n; ++i) {
    ASSERT_EQ(results[i], clear_float_check(values[i], f)) << ::testing::PrintToString(values[i]);
  }
}

}  // namespace
}  // namespace privml::floating
