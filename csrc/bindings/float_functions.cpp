// SPDX-License-Identifier: Apache-2.0
// Python names of the functions of float32: one line of kFloatFunctions each.
#include <string>

#include "bindings/float_session.h"
#include "bindings/float_words.h"
#include "functions/float/exponential.h"
#include "functions/float/gelu.h"
#include "functions/float/logarithm.h"
#include "functions/float/power.h"
#include "functions/float/root.h"
#include "functions/float/saturating.h"
#include "functions/float/sigmoid.h"
#include "functions/float/sine.h"
#include "functions/float/tangent.h"

namespace privml::bindings {
namespace {

struct FloatFunction {
  const char* name;
  floating::FunctionSteps steps;
  floating::FloatValue (*twin)(floating::FloatValue);
  const char* doc;
};

constexpr FloatFunction kFloatFunctions[] = {
    {"sin_pi", floating::sin_pi_of, floating::clear_float_sin_pi, "sin(pi x)"},
    {"cos_pi", floating::cos_pi_of, floating::clear_float_cos_pi, "cos(pi x)"},
    {"tan_pi", floating::tan_pi_of, floating::clear_float_tan_pi,
     "tan(pi x); infinite at the half-integers"},
    {"exp2", floating::exp2_of, floating::clear_float_exp2, "2^x"},
    {"exp", floating::exp_of, floating::clear_float_exp, "e^x"},
    {"log2", floating::log2_of, floating::clear_float_log2, "log2 |x|"},
    {"log", floating::log_of, floating::clear_float_log, "ln |x|"},
    {"rsqrt", floating::rsqrt_of, floating::clear_float_rsqrt, "1 / sqrt |x|"},
    {"sigmoid", floating::sigmoid_of, floating::clear_float_sigmoid, "1 / (1 + e^-x)"},
    {"tanh", floating::tanh_of, floating::clear_float_tanh, "hyperbolic tangent"},
    {"erf", floating::erf_of, floating::clear_float_erf, "error function"},
    {"gelu", floating::gelu_of, floating::clear_float_gelu, "x Phi(x)"},
};

void expect_float32(floating::FloatFormat f) {
  expect(f == floating::kFloat32, "float function: the format must be (8, 23); cast others to it");
}

void define(py::module_& m, const FloatFunction& f) {
  const auto run =
      float_unary([f](floating::FloatFormat) { return floating::float32_function(f.steps); });
  const auto clear =
      clear_unary_float([f](floating::FloatValue a, floating::FloatFormat) { return f.twin(a); });
  m.def(
      f.name,
      [run](TwoPartySession& session, const py::array& x, int p, int q) {
        expect_float32({p, q});
        return run(session, x, p, q);
      },
      "session"_a, "x"_a, "p"_a, "q"_a, (std::string(f.doc) + "; shares to shares").c_str());
  m.def((std::string("clear_") + f.name).c_str(),
        [clear](const py::array& x, int p, int q) {
          expect_float32({p, q});
          return clear(x, p, q);
        },
        "x"_a, "p"_a, "q"_a, (std::string(f.doc) + ", as the protocol computes it").c_str());
}

}  // namespace

void define_float_functions(py::module_& m) {
  for (const FloatFunction& f : kFloatFunctions) define(m, f);
  m.def(
      "power",
      [](TwoPartySession& session, const py::array& x, int exponent, int p, int q) {
        return float_unary([exponent](floating::FloatFormat f) {
          return floating::float_power(exponent, f);
        })(session, x, p, q);
      },
      "session"_a, "x"_a, "exponent"_a, "p"_a, "q"_a,
      "x^exponent for whole exponents from -64 to 64; shares to shares");
  m.def(
      "clear_power",
      [](const py::array& x, int exponent, int p, int q) {
        expect(std::abs(exponent) <= floating::kMostWholePower, "power: exponents lie in -64..64");
        return clear_unary_float([exponent](floating::FloatValue a, floating::FloatFormat f) {
          return floating::clear_float_power(a, exponent, f);
        })(x, p, q);
      },
      "x"_a, "exponent"_a, "p"_a, "q"_a, "x^exponent, as the protocol computes it");
}

}  // namespace privml::bindings
