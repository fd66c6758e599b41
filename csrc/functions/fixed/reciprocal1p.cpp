// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/reciprocal1p.h"

#include <algorithm>

#include "functions/fixed/evaluation.h"
#include "functions/fixed/piecewise.h"

namespace privml::fixed {
namespace {

constexpr int kMostIndexBits = 10;

struct Plan {
  FixedFormat in, out;
  Piecewise table;
  int drop;  // bits of the result behind the last place
};

// Bits of x that choose the line: a chord of length h is off by h^2 / 4 of which half goes to
// either side, for the second derivative is at most 2.
PiecewiseShape shape_of(FixedFormat in, FixedFormat out) {
  const int bits = in.bits - 1;
  if (in.bits <= kDirectBits) return {bits, 0, 0, out.scale, out.bits};
  const int cell = std::max(static_cast<int>(ceil_div(out.scale + kPolynomialPrecision - 3, 2)), 0);
  const int place_bits = in.scale - cell;
  return {bits - place_bits, place_bits, 1, out.scale + kCoefficientGuard,
          out.bits + kCoefficientGuard + place_bits};
}

bool is_served(const PiecewiseShape& shape) {
  const bool is_line = shape.degree == 1 && shape.place_bits >= 1 && shape.index_bits >= 1;
  return (is_line || shape.degree == 0) && shape.index_bits <= kMostIndexBits &&
         shape.ring_bits <= 64;
}

Plan make_plan(FixedFormat in, FixedFormat out) {
  expect_formats(in, out, "reciprocal1p");
  const PiecewiseShape shape = shape_of(in, out);
  expect(is_served(shape), "reciprocal1p: these formats need too many lines");
  const int cell = in.scale - shape.place_bits;  // cells have length 2^-cell
  const auto value = [cell](i64 index, u64 place) {
    const u64 x = (static_cast<u64>(index) << (kPlaceScale - cell)) + (place >> cell);
    const u128 divisor = (u128{1} << kPlaceScale) + x;
    return static_cast<i64>(((u128{2} << (kPlaceScale + kValueScale)) / divisor + 1) / 2);
  };
  return {in, out, make_piecewise(shape, value), result_scale(shape) - out.scale};
}

std::shared_ptr<const Plan> plan_of(FixedFormat in, FixedFormat out) {
  static PlanCache<Plan> plans;
  return plans.get(0, in, out, [&] { return make_plan(in, out); });
}

}  // namespace

bool has_reciprocal1p(FixedFormat in, FixedFormat out) {
  expect_formats(in, out, "reciprocal1p");
  return is_served(shape_of(in, out));
}

functions::RingShares reciprocal1p(functions::Evaluator& evaluator, const functions::RingShares& x,
                                   FixedFormat in, FixedFormat out) {
  const auto plan = plan_of(in, out);
  functions::RingShares value = piecewise(evaluator, plan->table, x);
  return evaluator.round_off(std::move(value), plan->table.shape.ring_bits, plan->drop);
}

void clear_reciprocal1p(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y) {
  clear_function(*plan_of(in, out), in, x, y, [](const Plan& plan, i64 number) {
    const u64 word = static_cast<u64>(number);
    u64 value = 0;
    clear_piecewise(plan.table, {&word, 1}, {&value, 1});
    const u64 ring = low_mask(plan.table.shape.ring_bits);
    return static_cast<i64>(((value + functions::half_of(plan.drop)) & ring) >> plan.drop);
  });
}

}  // namespace privml::fixed
