// SPDX-License-Identifier: Apache-2.0
#include "fixmath/exponential_form.h"

#include <initializer_list>

#include "fixmath/exponential.h"
#include "fixmath/exponential_product.h"
#include "fixmath/exponential_spline.h"
#include "fixmath/piecewise.h"
#include "fixmath/remembered.h"

namespace privml {
namespace {

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
  ExponentialForm best = ExponentialForm::table;
  i64 fewest = wire_bits(best, in, out);
  for (const ExponentialForm form : {ExponentialForm::spline, ExponentialForm::exact}) {
    if (!has_exponential_form(form, in, out)) continue;
    const i64 bits = wire_bits(form, in, out);
    if (bits >= fewest) continue;
    best = form;
    fewest = bits;
  }
  return best;
}

}  // namespace

bool has_exponential_form(ExponentialForm form, FixedFormat in, FixedFormat out) {
  switch (form) {
    case ExponentialForm::table:
      return true;
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
  expect_formats(in, out, "exp_negative");
  static Remembered<ExponentialForm> forms;
  return *forms.get(0, in, out, [&] { return choose(in, out); });
}

}  // namespace privml
