// SPDX-License-Identifier: Apache-2.0
// Python names of the floating-point protocols.
#include "bindings/float_session.h"
#include "functions/float/addition.h"
#include "functions/float/comparison.h"
#include "functions/float/conversion.h"
#include "functions/float/division.h"
#include "functions/float/multiplication.h"

namespace privml::bindings {
namespace {

void define(py::module_& m, const char* name,
            floating::FloatUnary (*operation)(floating::FloatFormat), const char* doc) {
  m.def(name, float_unary(operation), "session"_a, "x"_a, "p"_a, "q"_a, doc);
}

template <class Out>
void define(py::module_& m, const char* name,
            floating::Operation<Out, floating::FloatShares, floating::FloatShares> (*operation)(
                floating::FloatFormat),
            const char* doc) {
  m.def(name, float_binary(operation), "session"_a, "a"_a, "b"_a, "p"_a, "q"_a, doc);
}

void define_conversions(py::module_& m) {
  m.def(
      "from_fixed",
      [](TwoPartySession& session, const py::array& x, int bits, int scale, int p, int q) {
        const floating::FloatFormat f = floating::word_format(p, q);
        return run_float(session, shape_of(x), floating::float_from_fixed(bits, scale, f), f,
                         view<u64>(x, "x"));
      },
      "session"_a, "x"_a, "bits"_a, "scale"_a, "p"_a, "q"_a,
      "x / 2^scale to the nearest float; shares in Z_2^bits to shares of words");
  m.def(
      "to_fixed",
      [](TwoPartySession& session, const py::array& x, int p, int q, int bits, int scale) {
        const floating::FloatFormat f = floating::word_format(p, q);
        return run_float(session, shape_of(x), floating::float_to_fixed(f, bits, scale), f,
                         view<u64>(x, "x"));
      },
      "session"_a, "x"_a, "p"_a, "q"_a, "bits"_a, "scale"_a,
      "x 2^scale to the nearest integer, the ends of `bits` bits beyond them");
  m.def(
      "cast",
      [](TwoPartySession& session, const py::array& x, int p, int q, int to_p, int to_q) {
        const floating::FloatFormat from = floating::word_format(p, q);
        const floating::FloatFormat to = floating::word_format(to_p, to_q);
        return run_float(session, shape_of(x), floating::float_cast(from, to), to,
                         view<u64>(x, "x"));
      },
      "session"_a, "x"_a, "p"_a, "q"_a, "to_p"_a, "to_q"_a, "to another format, rounded");
}

}  // namespace

void define_float_primitives(py::module_& m) {
  define(m, "add", floating::float_add, "a + b");
  define(m, "subtract", floating::float_subtract, "a - b");
  define(m, "multiply", floating::float_multiply, "a b");
  define(m, "divide", floating::float_divide, "a / b; x / 0 is infinity, 0 / 0 is 0");
  define(m, "maximum", floating::float_maximum, "the larger one");
  define(m, "less_than", floating::float_less_than, "XOR shares of [a < b]");
  define(m, "less_equal", floating::float_less_equal, "XOR shares of [a <= b]");
  define(m, "equal", floating::float_equal, "XOR shares of [a = b]");
  define(m, "relu", floating::float_relu, "max(x, 0)");
  define(m, "negate", floating::float_negate, "-x, local");
  define(m, "absolute", floating::float_absolute, "|x|, local");
  define(m, "sqrt", floating::float_sqrt, "square root of the magnitude");
  define(m, "round_to_integer", floating::float_round_to_integer,
         "the nearest integer, ties to even");
  define_conversions(m);
}

}  // namespace privml::bindings
