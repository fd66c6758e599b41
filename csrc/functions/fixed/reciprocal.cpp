// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/reciprocal.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "functions/fixed/evaluation.h"
#include "functions/fixed/normalization.h"
#include "functions/fixed/unit_reciprocal.h"
#include "twopc/lookup/lookup.h"
#include "twopc/product/word_product.h"
#include "twopc/width/conversion.h"
#include "twopc/width/truncation.h"

namespace privml {
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
  WordFormat power() const { return {highest - lowest + 1, false}; }
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

void direct_chunk(Party& party, const Plan& plan, std::span<const u64> x, std::span<u64> y) {
  Words entry(x.size());
  lookup_xor(party, plan.table, x, plan.in.bits - 1, plan.out.bits - 1, entry);
  word_to_ring(party, entry, {plan.out.bits - 1, false}, plan.out.bits, y);
}

// Adds the largest output if the place is below the lowest.
void add_saturated(Party& party, const Plan& plan, const Normalized& number, std::span<u64> y) {
  const Words words = select_by_place(party, number, plan.too_large, plan.too_large[0]);
  const std::vector<u8> bits(words.begin(), words.end());
  Words ring(words.size());
  bits_to_ring(party, bits, plan.out.bits, ring);
  for (std::size_t k = 0; k < y.size(); ++k)
    y[k] = (y[k] + ring[k] * largest(plan)) & low_mask(plan.out.bits);
}

void reciprocal_chunk(Party& party, const Plan& plan, std::span<const u64> x, std::span<u64> y) {
  if (plan.direct()) return direct_chunk(party, plan, x, y);
  const bool first = party.rank == 0;
  if (plan.always_too_large()) {
    std::ranges::fill(y, first ? largest(plan) : 0);
    return;
  }
  const Normalized number = normalize(party, x, plan.in.bits);
  const Words power = select_by_place(party, number, plan.powers, plan.powers[0]);
  Words value(x.size()), product(x.size());
  unit_reciprocal(party, plan.unit, number.mantissa, value);
  if (first)
    for (u64& word : value) word += half_of_one(plan);
  multiply_word(party, power, plan.power(), value, plan.ring(), product);
  if (first)
    for (u64& word : product) word += half(plan);
  truncate_reduce(party, product, plan.ring(), plan.drop, y);
  if (plan.saturates()) add_saturated(party, plan, number, y);
}

void cost_reciprocal_chunk(CostMeter& meter, const Plan& plan, i64 n) {
  if (plan.direct()) {
    cost_lookup_xor(meter, n, plan.in.bits - 1, plan.out.bits - 1);
    cost_word_to_ring(meter, n, {plan.out.bits - 1, false}, plan.out.bits);
    return;
  }
  if (plan.always_too_large()) return;
  cost_normalize(meter, n, plan.in.bits);
  cost_unit_reciprocal(meter, plan.unit, n);
  cost_multiply_word(meter, n, plan.power(), plan.ring());
  cost_truncate_reduce(meter, n, plan.ring(), plan.drop);
  if (plan.saturates()) cost_bits_to_ring(meter, n, plan.out.bits);
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

void reciprocal(Party& party, std::span<const u64> x, FixedFormat in, FixedFormat out,
                std::span<u64> y) {
  run_function(party, *plan_of(in, out), x, y, reciprocal_chunk, cost_reciprocal_chunk);
}

void clear_reciprocal(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y) {
  clear_function(*plan_of(in, out), in, x, y, [](const Plan& plan, i64 value) {
    return static_cast<i64>(clear_value(plan, static_cast<u64>(value)));
  });
}

void cost_reciprocal(CostMeter& meter, i64 count, FixedFormat in, FixedFormat out) {
  cost_function(meter, count, *plan_of(in, out), cost_reciprocal_chunk);
}

}  // namespace privml
