// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/exponential.h"

#include <algorithm>
#include <vector>

#include "functions/fixed/evaluation.h"
#include "functions/fixed/exponential_table.h"
#include "functions/fixed/negative_exponential.h"
#include "twopc/compare/relu.h"
#include "twopc/width/extension.h"

namespace privml {
namespace {

NegativeExponential plan_negative(FixedFormat in, FixedFormat out) {
  expect_formats(in, out, "exp_negative");
  return plan_negative_exponential(
      {.bits = in.bits, .scale = in.scale, .out_scale = out.scale, .out_bits = out.bits});
}

std::vector<u64> negated(std::span<const u64> x) {
  std::vector<u64> a(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) a[i] = u64{0} - x[i];
  return a;
}

// e^x = e^(most / 2^scale) e^-(a / 2^scale) with a = most - x >= 0.
struct AnySign {
  FixedFormat in;
  u64 most;
  bool saturates;
  NegativeExponential exponential;
};

AnySign plan_any_sign(FixedFormat in, FixedFormat out) {
  expect_formats(in, out, "exp");
  const u64 largest_input = low_mask(in.bits - 1);
  const auto [most, start] = largest_exponential(out.bits - 1 - out.scale, in.scale, largest_input);
  return {in, most, most < largest_input,
          plan_negative_exponential({.bits = in.bits,
                                     .scale = in.scale,
                                     .out_scale = out.bits - 1,
                                     .out_bits = out.bits,
                                     .start = start,
                                     .below_one = true})};
}

std::shared_ptr<const NegativeExponential> negative(FixedFormat in, FixedFormat out) {
  static PlanCache<NegativeExponential> plans;
  return plans.get(0, in, out, [&] { return plan_negative(in, out); });
}

std::shared_ptr<const AnySign> any_sign(FixedFormat in, FixedFormat out) {
  static PlanCache<AnySign> plans;
  return plans.get(0, in, out, [&] { return plan_any_sign(in, out); });
}

void exp_chunk(Party& party, const AnySign& plan, std::span<const u64> x, std::span<u64> y) {
  std::vector<u64> a(x.begin(), x.end());
  if (plan.saturates) sign_extend(party, x, plan.in.bits, plan.in.bits + 1, a);
  const u64 most = party.rank == 0 ? plan.most : 0;
  for (u64& word : a) word = most - word;
  if (plan.saturates) relu(party, a, plan.in.bits + 1, a);
  negative_exponential(party, plan.exponential, a, y);
}

void cost_exp_chunk(CostMeter& meter, const AnySign& plan, i64 n) {
  if (plan.saturates) {
    cost_extend(meter, n, plan.in.bits, plan.in.bits + 1);
    cost_relu(meter, n, plan.in.bits + 1);
  }
  cost_negative_exponential(meter, plan.exponential, n);
}

void negative_chunk(Party& party, const NegativeExponential& plan, std::span<const u64> x,
                    std::span<u64> y) {
  negative_exponential(party, plan, negated(x), y);
}

i64 clear_value(const NegativeExponential& plan, i64 distance) {
  u64 value = static_cast<u64>(distance);
  clear_negative_exponential(plan, {&value, 1}, {&value, 1});
  return static_cast<i64>(value);
}

}  // namespace

void exp_negative(Party& party, std::span<const u64> x, FixedFormat in, FixedFormat out,
                  std::span<u64> y) {
  run_function(party, *negative(in, out), x, y, negative_chunk, cost_negative_exponential);
}

void clear_exp_negative(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y) {
  clear_function(*negative(in, out), in, x, y, [](const NegativeExponential& plan, i64 value) {
    return clear_value(plan, -value);
  });
}

void cost_exp_negative(CostMeter& meter, i64 count, FixedFormat in, FixedFormat out) {
  cost_function(meter, count, *negative(in, out), cost_negative_exponential);
}

void exp(Party& party, std::span<const u64> x, FixedFormat in, FixedFormat out, std::span<u64> y) {
  run_function(party, *any_sign(in, out), x, y, exp_chunk, cost_exp_chunk);
}

void clear_exp(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y) {
  clear_function(*any_sign(in, out), in, x, y, [](const AnySign& plan, i64 value) {
    return clear_value(plan.exponential, std::max<i64>(static_cast<i64>(plan.most) - value, 0));
  });
}

void cost_exp(CostMeter& meter, i64 count, FixedFormat in, FixedFormat out) {
  cost_function(meter, count, *any_sign(in, out), cost_exp_chunk);
}

}  // namespace privml
