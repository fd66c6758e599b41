// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/exponential.h"

#include <algorithm>
#include <initializer_list>
#include <optional>

#include "functions/fixed/evaluation.h"
#include "functions/fixed/exponential_product.h"
#include "functions/fixed/exponential_range.h"
#include "functions/fixed/exponential_spline.h"
#include "functions/fixed/exponential_table.h"
#include "functions/fixed/negative_exponential.h"
#include "functions/fixed/piecewise.h"

namespace privml::fixed {
namespace {

NegativeExponential plan_negative(FixedFormat in, FixedFormat out) {
  expect_formats(in, out, "exp_negative");
  return plan_negative_exponential(
      {.bits = in.bits, .scale = in.scale, .out_scale = out.scale, .out_bits = out.bits});
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

i64 clear_value(const NegativeExponential& plan, i64 distance) {
  u64 value = static_cast<u64>(distance);
  clear_negative_exponential(plan, {&value, 1}, {&value, 1});
  return static_cast<i64>(value);
}

}  // namespace

functions::RingShares exp_negative(functions::Evaluator& evaluator, const functions::RingShares& x,
                                   FixedFormat in, FixedFormat out) {
  return negative_exponential(evaluator, *negative(in, out), evaluator.negated(x, in.bits));
}

void clear_exp_negative(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y) {
  clear_function(*negative(in, out), in, x, y, [](const NegativeExponential& plan, i64 value) {
    return clear_value(plan, -value);
  });
}

functions::RingShares exp(functions::Evaluator& evaluator, const functions::RingShares& x,
                          FixedFormat in, FixedFormat out) {
  const auto plan = any_sign(in, out);
  const int bits = in.bits + (plan->saturates ? 1 : 0);
  const u64 most = evaluator.constant(plan->most);
  const functions::RingShares wide = evaluator.extend_signed(x, in.bits, bits);
  functions::RingShares a = evaluator.map(x.count, bits, [&](i64 i) { return most - wide[i]; });
  if (plan->saturates) a = evaluator.relu(a, bits);
  return negative_exponential(evaluator, plan->exponential, a);
}

void clear_exp(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y) {
  clear_function(*any_sign(in, out), in, x, y, [](const AnySign& plan, i64 value) {
    return clear_value(plan.exponential, std::max<i64>(static_cast<i64>(plan.most) - value, 0));
  });
}
namespace {

constexpr int kMostTableBits = 32;  // of arguments

FixedFunction function_of(ExponentialForm form) {
  switch (form) {
    case ExponentialForm::table:
      return exp_negative;
    case ExponentialForm::spline:
      return exp_negative_spline;
    case ExponentialForm::exact:
      return exp_negative_exact;
    case ExponentialForm::product:
      return exp_negative_product;
  }
  return nullptr;
}

i64 wire_bits(ExponentialForm form, FixedFormat in, FixedFormat out) {
  return metered_bits(
      [&](ot::CostMeter& meter, i64 n) { cost_function(meter, function_of(form), n, in, out); });
}

ExponentialForm choose(FixedFormat in, FixedFormat out) {
  std::optional<ExponentialForm> best;
  i64 fewest = 0;
  for (const ExponentialForm form :
       {ExponentialForm::table, ExponentialForm::spline, ExponentialForm::exact}) {
    if (!has_exponential_form(form, in, out)) continue;
    const i64 bits = wire_bits(form, in, out);
    if (best && bits >= fewest) continue;
    best = form;
    fewest = bits;
  }
  return best.value_or(ExponentialForm::table);
}

}  // namespace

bool has_exponential_form(ExponentialForm form, FixedFormat in, FixedFormat out) {
  switch (form) {
    case ExponentialForm::table:
      return in.bits <= kMostTableBits;
    case ExponentialForm::spline:
      return has_exp_negative_spline(in, out);
    case ExponentialForm::exact:
      return has_exp_negative_exact(in, out);
    case ExponentialForm::product:
      return has_exp_negative_product(in, out);
  }
  return false;
}

ExponentialForm cheapest_exponential_form(FixedFormat in, FixedFormat out) {
  expect_wide_formats(in, out, "exp_negative");
  static PlanCache<ExponentialForm> forms;
  return *forms.get(0, in, out, [&] { return choose(in, out); });
}

}  // namespace privml::fixed
