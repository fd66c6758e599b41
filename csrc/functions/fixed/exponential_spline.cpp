// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/exponential_spline.h"

#include "functions/fixed/evaluation.h"
#include "functions/fixed/exponential_range.h"
#include "functions/fixed/piecewise.h"

namespace privml::fixed {
namespace {

constexpr int kZeroBits = 4;  // values below 2^-4 units become zero

struct Plan {
  ExponentialRange range;
  Piecewise table;
  int drop;
};

PiecewiseTask task_of(FixedFormat in, FixedFormat out) {
  const int covered = covered_bits(in, out, 1);
  return {Series::exponential,
          covered,
          in.scale,
          out.scale + kPolynomialPrecision,
          out.scale + kCoefficientGuard,
          out.scale + 2 + kCoefficientGuard};
}

Plan make_plan(FixedFormat in, FixedFormat out) {
  expect_wide_formats(in, out, "exp_negative_spline");
  const PiecewiseTask task = task_of(in, out);
  const PiecewiseShape shape = choose_piecewise(task);
  const int length = kPlaceScale + shape.place_bits - in.scale;  // 2^length is a cell
  const auto value = [&](i64 cell, u64 v) {
    const u64 place =
        (static_cast<u64>(cell) << length) + static_cast<u64>((u128{v} << length) >> kPlaceScale);
    return series_value(Series::exponential, place);
  };
  return {exponential_range(in, out, task.bits, kZeroBits), make_piecewise(shape, value),
          result_scale(shape) - out.scale};
}

std::shared_ptr<const Plan> plan(FixedFormat in, FixedFormat out) {
  static PlanCache<Plan> plans;
  return plans.get(0, in, out, [&] { return make_plan(in, out); });
}

i64 clear_value(const Plan& p, i64 x) {
  const u64 a = u64{0} - static_cast<u64>(x);
  if (p.range.end > 0 && a >= p.range.end) return 0;
  u64 sum = 0;
  clear_piecewise(p.table, {&a, 1}, {&sum, 1});
  return static_cast<i64>(
      ((sum + functions::half_of(p.drop)) & low_mask(p.table.shape.ring_bits)) >> p.drop);
}

}  // namespace

bool has_exp_negative_spline(FixedFormat in, FixedFormat out) {
  expect_wide_formats(in, out, "exp_negative_spline");
  return has_piecewise(task_of(in, out));
}

functions::RingShares exp_negative_spline(functions::Evaluator& evaluator,
                                          const functions::RingShares& x, FixedFormat in,
                                          FixedFormat out) {
  const auto p = plan(in, out);
  const functions::RingShares a = evaluator.negated(x, in.bits);
  const functions::RingShares sum =
      evaluator.plus(piecewise(evaluator, p->table, a), functions::half_of(p->drop));
  return within_range(evaluator, p->range, a, sum, p->drop);
}

void clear_exp_negative_spline(std::span<const i64> x, FixedFormat in, FixedFormat out,
                               std::span<i64> y) {
  clear_function(*plan(in, out), in, x, y, clear_value);
}

}  // namespace privml::fixed
