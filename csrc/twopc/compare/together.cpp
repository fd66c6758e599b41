// SPDX-License-Identifier: Apache-2.0
#include "twopc/compare/together.h"

#include <algorithm>

namespace privml::twopc {

int levels_of(std::span<const Comparison> all) {
  int levels = 0;
  for (const Comparison& one : all) levels = std::max(levels, levels_of(one.plan));
  return levels;
}

ComparisonShape sign_and_carry(int bits, int shift) {
  const int low = bits - 1;
  return {low, shift < low ? shift : 0};
}

std::span<const u8> low_answer(const ComparisonShape& shape, const Comparison& finished) {
  return shape.split > 0 ? low_greater_of(finished) : greater_of(finished);
}

int levels_to_low(const ComparisonShape& shape, const ComparisonPlan& plan) {
  if (shape.split == 0) return levels_of(plan);
  int known = 0;
  for (int level = 0; level < levels_of(plan); ++level)
    for (const Join& join : plan.levels[level])
      if (join.high == plan.low_root) known = level + 1;
  return known;
}

void exchange_leaves(ot::Party& party, std::span<Comparison> all) {
  for (Comparison& one : all) read_masks(party, one);
  for (Comparison& one : all) send_leaves(party, one);
  for (Comparison& one : all) receive_leaves(party, one);
}

int levels_of(const ot::CostMeter& meter, std::span<const CountedShape> all) {
  int levels = 0;
  for (const auto& [shape, n] : all) levels = std::max(levels, comparison_levels(meter, shape, n));
  return levels;
}

void cost_together(ot::CostMeter& meter, std::span<const CountedShape> all, Flight first,
                   std::vector<Flight> more) {
  Flight leaves;
  for (const auto& [shape, n] : all) {
    cost_draw_comparison(meter, shape, n);
    cost_draw_levels(meter, shape, n);
    first = first + comparison_flight(meter, shape, n);
    leaves = leaves + leaves_flight(meter, shape, n);
    for (int level = 0; level < comparison_levels(meter, shape, n); ++level)
      more[level] = more[level] + level_flight(meter, shape, n, level);
  }
  cost_flight(meter, first);
  cost_flight(meter, leaves);
  for (const Flight& each : more) cost_flight(meter, each);
}

}  // namespace privml::twopc
