// SPDX-License-Identifier: Apache-2.0
// Python names of the functions of float32: one line of kFunctions each.
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
  void (*protocol)(Party&, FloatView, FloatSpan);
  FloatValue (*twin)(FloatValue);
  void (*cost)(CostMeter&, i64);
  const char* doc;
};

constexpr FloatFunction kFunctions[] = {
    {"sin_pi", float_sin_pi, clear_float_sin_pi, cost_float_sin_pi, "sin(pi x)"},
    {"cos_pi", float_cos_pi, clear_float_cos_pi, cost_float_cos_pi, "cos(pi x)"},
    {"tan_pi", float_tan_pi, clear_float_tan_pi, cost_float_tan_pi,
     "tan(pi x); infinite at the half-integers"},
    {"exp2", float_exp2, clear_float_exp2, cost_float_exp2, "2^x"},
    {"exp", float_exp, clear_float_exp, cost_float_exp, "e^x"},
    {"log2", float_log2, clear_float_log2, cost_float_log2, "log2 |x|"},
    {"log", float_log, clear_float_log, cost_float_log, "ln |x|"},
    {"rsqrt", float_rsqrt, clear_float_rsqrt, cost_float_rsqrt, "1 / sqrt |x|"},
    {"sigmoid", float_sigmoid, clear_float_sigmoid, cost_float_sigmoid, "1 / (1 + e^-x)"},
    {"tanh", float_tanh, clear_float_tanh, cost_float_tanh, "hyperbolic tangent"},
    {"erf", float_erf, clear_float_erf, cost_float_erf, "error function"},
    {"gelu", float_gelu, clear_float_gelu, cost_float_gelu, "x Phi(x)"},
};

void expect_float32(FloatFormat f) {
  expect(f == kFloat32, "float function: the format must be (8, 23); cast others to it");
}

void define(py::module_& m, const FloatFunction& f) {
  const auto protocol = [f](Party& party, FloatView a, FloatFormat, FloatSpan out) {
    f.protocol(party, a, out);
  };
  const auto cost = [f](CostMeter& meter, i64 n, FloatFormat) { f.cost(meter, n); };
  const auto run = float_unary(protocol, cost);
  const auto clear = clear_unary_float([f](FloatValue a, FloatFormat) { return f.twin(a); });
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
  for (const FloatFunction& f : kFunctions) define(m, f);
  m.def(
      "power",
      [](TwoPartySession& session, const py::array& x, int exponent, int p, int q) {
        const auto protocol = [exponent](Party& party, FloatView a, FloatFormat f, FloatSpan out) {
          float_power(party, a, exponent, f, out);
        };
        const auto cost = [exponent](CostMeter& meter, i64 n, FloatFormat f) {
          cost_float_power(meter, n, exponent, f);
        };
        return float_unary(protocol, cost)(session, x, p, q);
      },
      "session"_a, "x"_a, "exponent"_a, "p"_a, "q"_a,
      "x^exponent for whole exponents from -64 to 64; shares to shares");
  m.def(
      "clear_power",
      [](const py::array& x, int exponent, int p, int q) {
        expect(std::abs(exponent) <= kMostWholePower, "power: exponents lie in -64..64");
        return clear_unary_float([exponent](FloatValue a, FloatFormat f) {
          return clear_float_power(a, exponent, f);
        })(x, p, q);
      },
      "x"_a, "exponent"_a, "p"_a, "q"_a, "x^exponent, as the protocol computes it");
}

}  // namespace privml::bindings
