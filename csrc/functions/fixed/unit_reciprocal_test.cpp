// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/unit_reciprocal.h"

#include <gtest/gtest.h>

#include <cmath>

#include "functions/fixed/testing/functions.h"

namespace privml::fixed {
namespace {

using namespace fixed::testing;
using namespace twopc::testing;

void expect_secure_equals_clear(const UnitReciprocalShape& shape, const Words& u) {
  SCOPED_TRACE(::testing::Message()
               << shape.fraction << " " << shape.scale << " " << shape.out_bits);
  const UnitReciprocal plan = plan_unit_reciprocal(shape);
  const Both<Words> shares = share(u, std::max(shape.fraction, 1), 3);
  Both<Words> results{Words(u.size()), Words(u.size())};
  const Outcome outcome = run_parties({}, [&](ot::Party& party) {
    functions::Evaluator evaluator(party, std::ssize(u));
    evaluator.store(unit_reciprocal(evaluator, plan, evaluator.load(shares[party.rank], 0)),
                    shape.out_bits, results[party.rank], 0);
  });
  Words expected(u.size());
  clear_unit_reciprocal(plan, u, expected);
  ASSERT_EQ(reconstruct(results, shape.out_bits), expected);
  expect_cost_equals(outcome, [&](ot::CostMeter& meter) {
    functions::Evaluator evaluator(meter, std::ssize(u));
    unit_reciprocal(evaluator, plan, evaluator.ring(evaluator.n));
  });
}

Words all_words(int bits) {
  Words words(u64{1} << bits);
  for (u64 i = 0; i < words.size(); ++i) words[i] = i;
  return words;
}

TEST(UnitReciprocal, EveryNumberOfFewBits) {
  for (int fraction : {0, 1, 3, 6, 9})
    for (int scale : {4, 5, 11, 18, 20, 31})
      for (int out_bits : {scale + 1, scale + 9})
        expect_secure_equals_clear({fraction, scale, out_bits}, all_words(fraction));
}

TEST(UnitReciprocal, WideNumbers) {
  for (int fraction : {14, 24, 31})
    for (int scale : {12, 19, 24, 31})
      for (int out_bits : {scale + 1, 32, 40})
        expect_secure_equals_clear({fraction, scale, out_bits}, random_words(300, fraction, 5));
}

// The largest error in units of 2^-scale over `count` numbers, and that results are in range.
double largest_error(const UnitReciprocalShape& shape, const Words& u) {
  const UnitReciprocal plan = plan_unit_reciprocal(shape);
  Words out(u.size());
  clear_unit_reciprocal(plan, u, out);
  double worst = 0;
  const u64 most = (u64{1} << (shape.scale - 1)) - 1;
  for (std::size_t i = 0; i < u.size(); ++i) {
    EXPECT_LE(out[i], most) << "u = " << u[i];
    const double v = 1 + std::ldexp(static_cast<double>(u[i]), -shape.fraction);
    const double exact = std::ldexp(1 / v - 0.5, shape.scale);
    worst = std::max(worst, std::abs(static_cast<double>(out[i]) - exact));
  }
  return worst;
}

TEST(UnitReciprocal, ErrorsBelowTwoUnits) {
  for (int scale = 4; scale <= 18; ++scale)
    EXPECT_LT(largest_error({16, scale, scale + 1}, all_words(16)), 2.0) << "scale " << scale;
  for (int scale = 19; scale <= 31; ++scale)
    for (int fraction : {14, 31})
      EXPECT_LT(largest_error({fraction, scale, 40}, random_words(20000, fraction, 5)), 2.0)
          << "scale " << scale;
}

TEST(UnitReciprocal, ChecksumOfTheLines) {
  const UnitReciprocal plan = plan_unit_reciprocal({12, 12, 13});
  EXPECT_EQ(checksum(plan.constants), 15322439201883847281U);
  EXPECT_EQ(checksum(plan.slopes), 7584112053645087978U);
}

}  // namespace
}  // namespace privml::fixed
