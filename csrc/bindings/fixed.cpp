// SPDX-License-Identifier: Apache-2.0
// Python names of the fixed-point functions: one line of kFixedPointFunctions each.
#include <string>

#include "bindings/elementwise.h"
#include "functions/fixed/exponential.h"
#include "functions/fixed/exponential_product.h"
#include "functions/fixed/exponential_spline.h"
#include "functions/fixed/logarithm.h"
#include "functions/fixed/reciprocal.h"
#include "functions/fixed/reciprocal1p.h"
#include "functions/fixed/reciprocal_square_root.h"
#include "functions/fixed/sine.h"
#include "functions/fixed/sine_product.h"
#include "functions/fixed/smooth.h"

namespace privml::bindings {
namespace {

struct FixedPointFunction {
  const char* name;
  fixed::FixedFunction function;
  void (*twin)(std::span<const i64>, fixed::FixedFormat, fixed::FixedFormat, std::span<i64>);
  const char* doc;
};

using F = fixed::SmoothFunction;

constexpr FixedPointFunction kFixedPointFunctions[] = {
    {"exp_negative", fixed::exp_negative, fixed::clear_exp_negative, "e^x for x <= 0"},
    {"exp_negative_spline", fixed::exp_negative_spline, fixed::clear_exp_negative_spline,
     "e^x for x <= 0 by a piecewise polynomial"},
    {"exp_negative_exact", fixed::exp_negative_exact, fixed::clear_exp_negative_exact,
     "e^x for x <= 0 by a product that no rounding shows in"},
    {"exp_negative_product", fixed::exp_negative_product, fixed::clear_exp_negative_product,
     "e^x for x <= 0 by a product whose last place may depend on the shares"},
    {"exp", fixed::exp, fixed::clear_exp, "e^x, at most the largest of the output's range"},
    {"reciprocal", fixed::reciprocal, fixed::clear_reciprocal, "1 / x for x > 0"},
    {"reciprocal1p", fixed::reciprocal1p, fixed::clear_reciprocal1p, "1 / (1 + x) for x >= 0"},
    {"sigmoid", fixed::smooth<F::sigmoid>, fixed::clear_smooth<F::sigmoid>, "1 / (1 + e^-x)"},
    {"tanh", fixed::smooth<F::tanh>, fixed::clear_smooth<F::tanh>, "hyperbolic tangent"},
    {"rsqrt", fixed::rsqrt, fixed::clear_rsqrt, "1 / sqrt(x) for x > 0"},
    {"rsqrt_significant", fixed::rsqrt_significant<20>, fixed::clear_rsqrt_significant<20>,
     "1 / sqrt(x) for x > 0, 20 bits of it"},
    {"rsqrt_significant_14", fixed::rsqrt_significant<14>, fixed::clear_rsqrt_significant<14>,
     "1 / sqrt(x) for x > 0, 14 bits of it"},
    {"sqrt", fixed::sqrt, fixed::clear_sqrt, "sqrt(x) for x >= 0"},
    {"log", fixed::log, fixed::clear_log, "ln x for x > 0"},
    {"erf", fixed::smooth<F::erf>, fixed::clear_smooth<F::erf>, "erf x"},
    {"gelu", fixed::smooth<F::gelu>, fixed::clear_smooth<F::gelu>, "x Phi(x)"},
    {"gelu_tanh", fixed::smooth<F::gelu_tanh>, fixed::clear_smooth<F::gelu_tanh>,
     "x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2"},
    {"silu", fixed::smooth<F::silu>, fixed::clear_smooth<F::silu>, "x / (1 + e^-x)"},
    {"sin", fixed::sin, fixed::clear_sin, "sine of radians"},
    {"cos", fixed::cos, fixed::clear_cos, "cosine of radians"},
    {"sin_product", fixed::sin_product, fixed::clear_sin_product,
     "sine of radians by products whose last place may depend on the shares"},
    {"cos_product", fixed::cos_product, fixed::clear_cos_product,
     "cosine of radians by products whose last place may depend on the shares"},
    {"softplus", fixed::smooth<F::softplus>, fixed::clear_smooth<F::softplus>, "ln(1 + e^x)"},
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
        const fixed::FixedFormat in{in_bits, in_scale}, out{out_bits, out_scale};
        const auto words = view<u64>(x, "x");
        Result<u64> y(session, shape_of(x));
        session.run_divided(
            size(words),
            [&](ot::Party& party, twopc::LaneRange range) {
              fixed::evaluate_function(party, f.function, part(words, range), in, out,
                                       part(y.span, range));
            },
            [&](ot::CostMeter& meter, twopc::LaneRange range) {
              fixed::cost_function(meter, f.function, range.count, in, out);
            });
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
  fixed::ExponentialForm form;
};

constexpr NamedForm kForms[] = {
    {"table", "exp_negative", fixed::ExponentialForm::table},
    {"spline", "exp_negative_spline", fixed::ExponentialForm::spline},
    {"exact", "exp_negative_exact", fixed::ExponentialForm::exact},
    {"product", "exp_negative_product", fixed::ExponentialForm::product}};

// The function that computes e^x, x <= 0, in form `wanted`, or in the cheapest one for "auto" and
// if the formats have no such form.
const char* exp_negative_function(const std::string& wanted, int in_bits, int in_scale,
                                  int out_bits, int out_scale) {
  const fixed::FixedFormat in{in_bits, in_scale}, out{out_bits, out_scale};
  for (const NamedForm& named : kForms)
    if (named.name == wanted && (named.form == fixed::ExponentialForm::table ||
                                 fixed::has_exponential_form(named.form, in, out)))
      return named.function;
  const fixed::ExponentialForm cheapest = fixed::cheapest_exponential_form(in, out);
  for (const NamedForm& named : kForms)
    if (named.form == cheapest) return named.function;
  throw InvalidArgument("exp_negative_function: no form");
}

}  // namespace

void define_fixed_point_functions(py::module_& m) {
  m.def("exp_negative_function", &exp_negative_function, "form"_a, "in_bits"_a, "in_scale"_a,
        "out_bits"_a, "out_scale"_a,
        "Name of the function that computes e^x for x <= 0 in this form, or in the cheapest");
  m.def(
      "has_reciprocal1p",
      [](int in_bits, int in_scale, int out_bits, int out_scale) {
        return fixed::has_reciprocal1p({in_bits, in_scale}, {out_bits, out_scale});
      },
      "in_bits"_a, "in_scale"_a, "out_bits"_a, "out_scale"_a,
      "Whether reciprocal1p serves these formats");
  for (const FixedPointFunction& f : kFixedPointFunctions) define(m, f);
}

}  // namespace privml::bindings
