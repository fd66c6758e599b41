// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/exponential_form.h"

#include <initializer_list>
#include <optional>

#include "functions/fixed/evaluation.h"
#include "functions/fixed/exponential.h"
#include "functions/fixed/exponential_product.h"
#include "functions/fixed/exponential_range.h"
#include "functions/fixed/exponential_spline.h"
#include "functions/fixed/piecewise.h"

namespace privml {
namespace {

constexpr int kMostTableBits = 32;  // of arguments

i64 wire_bits(ExponentialForm form, FixedFormat in, FixedFormat out) {
  return metered_bits([&](CostMeter& meter, i64 n) {
    switch (form) {
      case ExponentialForm::table:
        return cost_exp_negative(meter, n, in, out);
      case ExponentialForm::spline:
        return cost_exp_negative_spline(meter, n, in, out);
      case ExponentialForm::exact:
        return cost_exp_negative_exact(meter, n, in, out);
      case ExponentialForm::product:
        return cost_exp_negative_product(meter, n, in, out);
    }
  });
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

}  // namespace privml
