// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/exponential_product.h"

#include <vector>

#include "functions/fixed/chunked.h"
#include "functions/fixed/exponential_product_plan.h"
#include "functions/fixed/exponential_table.h"
#include "functions/fixed/plan_cache.h"
#include "twopc/width/truncation.h"

namespace privml {
namespace {

using Words = std::vector<u64>;
using MaybePlan = std::optional<ExponentialProduct>;

std::shared_ptr<const MaybePlan> cached_plan(bool exact, FixedFormat in, FixedFormat out) {
  static PlanCache<MaybePlan> plans;
  return plans.get(exact ? 1 : 0, in, out,
                   [&] { return plan_exponential_product(in, out, exact); });
}

bool has_plan(bool exact, FixedFormat in, FixedFormat out) {
  return cached_plan(exact, in, out)->has_value();
}

// A copy: its functions are small.
ExponentialProduct plan(bool exact, FixedFormat in, FixedFormat out) {
  const auto found = cached_plan(exact, in, out);
  expect(found->has_value(),
         exact ? "exp_negative_exact: 64 bits do not suffice for these formats"
               : "exp_negative_product: 64 bits do not suffice for these formats");
  return **found;
}

void run_chunk(Party& party, const ExponentialProduct& p, std::span<const u64> x,
               std::span<u64> y) {
  Words a(x.size()), value(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) a[i] = u64{0} - x[i];
  addition_formula(party, p.formula, a, value);
  if (party.rank == 0)
    for (u64& word : value) word += p.offset;
  truncate_reduce(party, value, p.result_bits(), p.shift, value);
  within_range(party, p.range, a, value, y);
}

i64 clear_value(const ExponentialProduct& p, i64 x) {
  const u64 a = u64{0} - static_cast<u64>(x);
  if (p.range.end > 0 && a >= p.range.end) return 0;
  const u128 value = exponential_fraction(a, p.in.scale) << p.out.scale;
  return static_cast<i64>((value + (u128{p.offset} << (64 - p.shift))) >> 64);
}

}  // namespace

bool has_exp_negative_exact(FixedFormat in, FixedFormat out) { return has_plan(true, in, out); }

void exp_negative_exact(Party& party, std::span<const u64> x, FixedFormat in, FixedFormat out,
                        std::span<u64> y) {
  run_function(party, plan(true, in, out), x, y, run_chunk, cost_exponential_product);
}

void clear_exp_negative_exact(std::span<const i64> x, FixedFormat in, FixedFormat out,
                              std::span<i64> y) {
  clear_function(plan(true, in, out), in, x, y, clear_value);
}

void cost_exp_negative_exact(CostMeter& meter, i64 count, FixedFormat in, FixedFormat out) {
  cost_function(meter, count, plan(true, in, out), cost_exponential_product);
}

bool has_exp_negative_product(FixedFormat in, FixedFormat out) { return has_plan(false, in, out); }

void exp_negative_product(Party& party, std::span<const u64> x, FixedFormat in, FixedFormat out,
                          std::span<u64> y) {
  run_function(party, plan(false, in, out), x, y, run_chunk, cost_exponential_product);
}

void clear_exp_negative_product(std::span<const i64> x, FixedFormat in, FixedFormat out,
                                std::span<i64> y) {
  clear_function(plan(false, in, out), in, x, y, clear_value);
}

void cost_exp_negative_product(CostMeter& meter, i64 count, FixedFormat in, FixedFormat out) {
  cost_function(meter, count, plan(false, in, out), cost_exponential_product);
}

}  // namespace privml
