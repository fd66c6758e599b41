// SPDX-License-Identifier: Apache-2.0
// Python names of the fixed-point functions: one line of kFunctions each.
#include <string>

#include "bindings/elementwise.h"
#include "functions/fixed/exponential.h"
#include "functions/fixed/exponential_form.h"
#include "functions/fixed/exponential_product.h"
#include "functions/fixed/exponential_spline.h"
#include "functions/fixed/logarithm.h"
#include "functions/fixed/reciprocal.h"
#include "functions/fixed/reciprocal_square_root.h"
#include "functions/fixed/sine.h"
#include "functions/fixed/sine_product.h"
#include "functions/fixed/smooth.h"

namespace privml::bindings {
namespace {

struct FixedPointFunction {
  const char* name;
  void (*protocol)(Party&, std::span<const u64>, FixedFormat, FixedFormat, std::span<u64>);
  void (*twin)(std::span<const i64>, FixedFormat, FixedFormat, std::span<i64>);
  void (*cost)(CostMeter&, i64, FixedFormat, FixedFormat);
  const char* doc;
};

using F = SmoothFunction;

constexpr FixedPointFunction kFunctions[] = {
    {"exp_negative", exp_negative, clear_exp_negative, cost_exp_negative, "e^x for x <= 0"},
    {"exp_negative_spline", exp_negative_spline, clear_exp_negative_spline,
     cost_exp_negative_spline, "e^x for x <= 0 by a piecewise polynomial"},
    {"exp_negative_exact", exp_negative_exact, clear_exp_negative_exact, cost_exp_negative_exact,
     "e^x for x <= 0 by a product that no rounding shows in"},
    {"exp_negative_product", exp_negative_product, clear_exp_negative_product,
     cost_exp_negative_product,
     "e^x for x <= 0 by a product whose last place may depend on the shares"},
    {"exp", exp, clear_exp, cost_exp, "e^x, at most the largest of the output's range"},
    {"reciprocal", reciprocal, clear_reciprocal, cost_reciprocal, "1 / x for x > 0"},
    {"sigmoid", smooth<F::sigmoid>, clear_smooth<F::sigmoid>, cost_smooth<F::sigmoid>,
     "1 / (1 + e^-x)"},
    {"tanh", smooth<F::tanh>, clear_smooth<F::tanh>, cost_smooth<F::tanh>, "hyperbolic tangent"},
    {"rsqrt", rsqrt, clear_rsqrt, cost_rsqrt, "1 / sqrt(x) for x > 0"},
    {"rsqrt_significant", rsqrt_significant, clear_rsqrt_significant, cost_rsqrt_significant,
     "1 / sqrt(x) for x > 0, 20 bits of it"},
    {"sqrt", sqrt, clear_sqrt, cost_sqrt, "sqrt(x) for x >= 0"},
    {"log", log, clear_log, cost_log, "ln x for x > 0"},
    {"erf", smooth<F::erf>, clear_smooth<F::erf>, cost_smooth<F::erf>, "erf x"},
    {"gelu", smooth<F::gelu>, clear_smooth<F::gelu>, cost_smooth<F::gelu>, "x Phi(x)"},
    {"silu", smooth<F::silu>, clear_smooth<F::silu>, cost_smooth<F::silu>, "x / (1 + e^-x)"},
    {"sin", sin, clear_sin, cost_sin, "sine of radians"},
    {"cos", cos, clear_cos, cost_cos, "cosine of radians"},
    {"sin_product", sin_product, clear_sin_product, cost_sin_product,
     "sine of radians by products whose last place may depend on the shares"},
    {"cos_product", cos_product, clear_cos_product, cost_cos_product,
     "cosine of radians by products whose last place may depend on the shares"},
    {"softplus", smooth<F::softplus>, clear_smooth<F::softplus>, cost_smooth<F::softplus>,
     "ln(1 + e^x)"},
};

std::span<const i64> signed_view(const py::array& x) {
  const auto words = view<u64>(x, "x");
  return {reinterpret_cast<const i64*>(words.data()), words.size()};
}

void define(py::module_& m, const FixedPointFunction& f) {
  m.def(
      f.name,
      [f](TwoPartySession& session, const py::array& x, int in_bits, int in_scale, int out_bits,
          int out_scale) {
        const FixedFormat in{in_bits, in_scale}, out{out_bits, out_scale};
        const auto words = view<u64>(x, "x");
        Result<u64> y(session, shape_of(x));
        session.run_divided(
            size(words),
            [&](Party& party, LaneRange range) {
              f.protocol(party, part(words, range), in, out, part(y.span, range));
            },
            [&](CostMeter& meter, LaneRange range) { f.cost(meter, range.count, in, out); });
        return y.array;
      },
      "session"_a, "x"_a, "in_bits"_a, "in_scale"_a, "out_bits"_a, "out_scale"_a,
      (std::string(f.doc) + "; shares in Z_2^in_bits to shares in Z_2^out_bits").c_str());
  m.def(
      (std::string("clear_") + f.name).c_str(),
      [f](const py::array& x, int in_bits, int in_scale, int out_bits, int out_scale) {
        const auto words = signed_view(x);
        Result<u64> y(shape_of(x));
        const std::span<i64> out(reinterpret_cast<i64*>(y.span.data()), y.span.size());
        {
          const py::gil_scoped_release without_interpreter;
          f.twin(words, {in_bits, in_scale}, {out_bits, out_scale}, out);
        }
        return y.array;
      },
      "x"_a, "in_bits"_a, "in_scale"_a, "out_bits"_a, "out_scale"_a,
      (std::string(f.doc) + "; signed words to signed words, as the protocol computes it").c_str());
}

struct NamedForm {
  const char* name;
  const char* function;
  ExponentialForm form;
};

constexpr NamedForm kForms[] = {{"table", "exp_negative", ExponentialForm::table},
                                {"spline", "exp_negative_spline", ExponentialForm::spline},
                                {"exact", "exp_negative_exact", ExponentialForm::exact},
                                {"product", "exp_negative_product", ExponentialForm::product}};

// The function that computes e^x, x <= 0, in form `wanted`, or in the cheapest one for "auto" and
// where the formats have no such form.
const char* exp_negative_function(const std::string& wanted, int in_bits, int in_scale,
                                  int out_bits, int out_scale) {
  const FixedFormat in{in_bits, in_scale}, out{out_bits, out_scale};
  for (const NamedForm& named : kForms)
    if (named.name == wanted &&
        (named.form == ExponentialForm::table || has_exponential_form(named.form, in, out)))
      return named.function;
  const ExponentialForm cheapest = cheapest_exponential_form(in, out);
  for (const NamedForm& named : kForms)
    if (named.form == cheapest) return named.function;
  throw InvalidArgument("exp_negative_function: no form");
}

}  // namespace

void define_fixed_point_functions(py::module_& m) {
  m.def("exp_negative_function", &exp_negative_function, "form"_a, "in_bits"_a, "in_scale"_a,
        "out_bits"_a, "out_scale"_a,
        "Name of the function that computes e^x for x <= 0 in this form, or in the cheapest");
  for (const FixedPointFunction& f : kFunctions) define(m, f);
}

}  // namespace privml::bindings
