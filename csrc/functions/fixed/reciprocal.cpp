// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/reciprocal.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "functions/fixed/evaluation.h"
#include "functions/fixed/normalization.h"
#include "functions/fixed/unit_reciprocal.h"

namespace privml::fixed {
namespace {

using Words = std::vector<u64>;

constexpr int kLeastScale = 4;

// y = (w * powers[k]) >> drop with w = 2^scale / v in [2^(scale - 1), 2^scale), or the largest
// output if too_large[k].
struct Plan {
  FixedFormat in, out;
  Words table;       // of all inputs, if these are few
  int lowest = 0;    // places below are too large
  int highest = -1;  // places above give less than half a unit
  int drop = 0;
  Words powers, too_large;
  UnitReciprocal unit;

  bool direct() const { return !table.empty(); }
  bool always_too_large() const { return !direct() && highest < lowest; }
  bool saturates() const { return lowest > 0; }
  int ring() const { return out.bits + drop; }
  twopc::WordFormat power() const { return {highest - lowest + 1, false}; }
};

u64 largest(const Plan& plan) { return low_mask(plan.out.bits - 1); }

void fill_table(Plan& plan) {
  const int scale = plan.in.scale + plan.out.scale;
  for (u64 x = 0; x < u64{1} << (plan.in.bits - 1); ++x) {
    const u64 number = std::max<u64>(x, 1);
    plan.table.push_back(std::min(((u64{2} << scale) / number + 1) / 2, largest(plan)));
  }
}

Plan make_plan(FixedFormat in, FixedFormat out) {
  expect_formats(in, out, "reciprocal");
  Plan plan{in, out, {}, 0, -1, 0, {}, {}, {}};
  if (in.bits <= kDirectBits) {
    fill_table(plan);
    return plan;
  }
  const int top = in.scale + out.scale;  // 2^top / (2^k v) is the result
  const int places = in.bits - 1;
  plan.lowest = std::max(0, top - (out.bits - 1));
  plan.highest = std::min(places - 1, top + 1);
  if (plan.always_too_large()) return plan;
  const int scale = std::max(kLeastScale, std::min(out.bits - 1, top - plan.lowest + 1));
  plan.drop = scale + plan.highest - top;
  for (int k = 0; k < places; ++k) {
    const bool counts = plan.lowest <= k && k <= plan.highest;
    plan.powers.push_back(counts ? u64{1} << (plan.highest - k) : 0);
    plan.too_large.push_back(k < plan.lowest);
  }
  plan.unit =
      plan_unit_reciprocal({.fraction = in.bits - 2, .scale = scale, .out_bits = plan.ring()});
  return plan;
}

std::shared_ptr<const Plan> plan_of(FixedFormat in, FixedFormat out) {
  static PlanCache<Plan> plans;
  return plans.get(0, in, out, [&] { return make_plan(in, out); });
}

// Rounds, except if w has more bits than an output that w just below 1 must not overflow.
u64 half(const Plan& plan) {
  const bool reaches_end = plan.in.scale + plan.out.scale - plan.lowest == plan.out.bits - 1;
  const bool finer = plan.unit.shape.scale > plan.out.bits - 1;
  return plan.drop == 0 || (reaches_end && finer) ? 0 : u64{1} << (plan.drop - 1);
}
// unit_reciprocal gives w less this.
u64 half_of_one(const Plan& plan) { return u64{1} << (plan.unit.shape.scale - 1); }

functions::RingShares direct_value(functions::Evaluator& evaluator, const Plan& plan,
                                   const functions::RingShares& x) {
  const functions::RingShares entry =
      evaluator.lookup_xor(plan.table, x, plan.in.bits - 1, plan.out.bits - 1);
  return evaluator.word_to_ring(entry, {plan.out.bits - 1, false}, plan.out.bits);
}

// Adds the largest output if the place is below the lowest.
functions::RingShares saturated(functions::Evaluator& evaluator, const Plan& plan,
                                const functions::RingShares& too_large,
                                const functions::RingShares& y) {
  return evaluator.map(y.count, plan.out.bits,
                       [&](i64 k) { return y[k] + too_large[k] * largest(plan); });
}

u64 clear_value(const Plan& plan, u64 x) {
  if (plan.direct()) return plan.table[x & low_mask(plan.in.bits - 1)];
  if (plan.always_too_large()) return largest(plan);
  const ClearNormalized number = clear_normalize(x, plan.in.bits);
  const int place = std::max(number.place, 0);
  if (plan.too_large[place]) return largest(plan);
  u64 value = 0;
  clear_unit_reciprocal(plan.unit, {&number.mantissa, 1}, {&value, 1});
  const u64 product = (value + half_of_one(plan)) * plan.powers[place] + half(plan);
  return (product & low_mask(plan.ring())) >> plan.drop;
}

}  // namespace

functions::RingShares reciprocal(functions::Evaluator& evaluator, const functions::RingShares& x,
                                 FixedFormat in, FixedFormat out) {
  const auto p = plan_of(in, out);
  const Plan& plan = *p;
  if (plan.direct()) return direct_value(evaluator, plan, x);
  if (plan.always_too_large())
    return evaluator.map(x.count, out.bits, [&](i64) { return evaluator.constant(largest(plan)); });
  const int ring = plan.ring();
  const bool looks_up = !plan.unit.direct() && plan.unit.shape.fraction > 0;
  const LineLookup lookup = looks_up ? line_of(plan.unit) : LineLookup{};
  Continuation continuation{{plan.powers, plan.powers[0]}, plan.power().bits, ring};
  if (plan.saturates()) continuation.flag = {plan.too_large, plan.too_large[0]};
  continuation.flag_ring = out.bits;
  if (looks_up) continuation.lookup = &lookup;
  Continued number = normalize(evaluator, x, in.bits, continuation);
  const functions::RingShares value = evaluator.plus(
      unit_reciprocal(evaluator, plan.unit, number.number.mantissa, number.lookup_vectors()),
      half_of_one(plan));
  const functions::RingShares product = multiply_by_power(evaluator, number, value);
  const functions::RingShares y =
      evaluator.truncate_reduce(evaluator.plus(product, half(plan)), ring, plan.drop);
  return plan.saturates() ? saturated(evaluator, plan, number.flag, y) : y;
}

void clear_reciprocal(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y) {
  clear_function(*plan_of(in, out), in, x, y, [](const Plan& plan, i64 value) {
    return static_cast<i64>(clear_value(plan, static_cast<u64>(value)));
  });
}

}  // namespace privml::fixed
