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

template <class Protocol>
void binary(py::module_& m, const char* name, Protocol protocol,
            void (*cost)(ot::CostMeter&, i64, floating::FloatFormat), const char* doc) {
  m.def(name, float_binary<u64>(protocol, cost), "session"_a, "a"_a, "b"_a, "p"_a, "q"_a, doc);
}

template <class Protocol>
void relation(py::module_& m, const char* name, Protocol protocol,
              void (*cost)(ot::CostMeter&, i64, floating::FloatFormat), const char* doc) {
  m.def(name, float_binary<u8>(protocol, cost), "session"_a, "a"_a, "b"_a, "p"_a, "q"_a, doc);
}

template <class Protocol>
void unary(py::module_& m, const char* name, Protocol protocol,
           void (*cost)(ot::CostMeter&, i64, floating::FloatFormat), const char* doc) {
  m.def(name, float_unary(protocol, cost), "session"_a, "x"_a, "p"_a, "q"_a, doc);
}

void cost_nothing(ot::CostMeter&, i64, floating::FloatFormat) {}

void define_conversions(py::module_& m) {
  m.def(
      "from_fixed",
      [](TwoPartySession& session, const py::array& x, int bits, int scale, int p, int q) {
        const floating::FloatFormat f{p, q};
        floating::expect_word_format(f);
        const auto in = view<u64>(x, "x");
        return run_to_words(
            session, shape_of(x), f,
            [&](ot::Party& party, twopc::LaneRange range, floating::FloatSpan out) {
              floating::float_from_fixed(party, part(in, range), bits, scale, f, out);
            },
            [&](ot::CostMeter& meter, i64 n) {
              floating::cost_float_from_fixed(meter, n, bits, scale, f);
            });
      },
      "session"_a, "x"_a, "bits"_a, "scale"_a, "p"_a, "q"_a,
      "x / 2^scale to the nearest float; shares in Z_2^bits to shares of words");
  m.def(
      "to_fixed",
      [](TwoPartySession& session, const py::array& x, int p, int q, int bits, int scale) {
        const floating::FloatFormat f{p, q};
        floating::expect_word_format(f);
        const auto in = view<u64>(x, "x");
        return run_float<u64>(
            session, shape_of(x),
            [&](ot::Party& party, twopc::LaneRange range, std::span<u64> out) {
              floating::float_to_fixed(party, unpacked(party, in, range, f), f, bits, scale, out);
            },
            [&](ot::CostMeter& meter, i64 n) {
              floating::cost_float_to_fixed(meter, n, f, bits, scale);
            });
      },
      "session"_a, "x"_a, "p"_a, "q"_a, "bits"_a, "scale"_a,
      "x 2^scale to the nearest integer, the ends of `bits` bits beyond them");
  m.def(
      "cast",
      [](TwoPartySession& session, const py::array& x, int p, int q, int to_p, int to_q) {
        const floating::FloatFormat from{p, q}, to{to_p, to_q};
        floating::expect_word_format(from);
        floating::expect_word_format(to);
        const auto in = view<u64>(x, "x");
        return run_to_words(
            session, shape_of(x), to,
            [&](ot::Party& party, twopc::LaneRange range, floating::FloatSpan out) {
              floating::float_cast(party, unpacked(party, in, range, from), from, to, out);
            },
            [&](ot::CostMeter& meter, i64 n) { floating::cost_float_cast(meter, n, from, to); });
      },
      "session"_a, "x"_a, "p"_a, "q"_a, "to_p"_a, "to_q"_a, "to another format, rounded");
}

}  // namespace

void define_float_primitives(py::module_& m) {
  binary(m, "add", floating::float_add, floating::cost_float_add, "a + b");
  binary(m, "subtract", floating::float_subtract, floating::cost_float_subtract, "a - b");
  binary(m, "multiply", floating::float_multiply, floating::cost_float_multiply, "a b");
  binary(m, "divide", floating::float_divide, floating::cost_float_divide,
         "a / b; x / 0 is infinity, 0 / 0 is 0");
  binary(m, "maximum", floating::float_maximum, floating::cost_float_maximum, "the larger one");
  relation(m, "less_than", floating::float_less_than, floating::cost_float_less_than,
           "XOR shares of [a < b]");
  relation(m, "less_equal", floating::float_less_equal, floating::cost_float_less_equal,
           "XOR shares of [a <= b]");
  relation(m, "equal", floating::float_equal, floating::cost_float_equal, "XOR shares of [a = b]");
  unary(m, "relu", floating::float_relu, floating::cost_float_relu, "max(x, 0)");
  unary(
      m, "negate",
      [](ot::Party& party, floating::FloatView a, floating::FloatFormat, floating::FloatSpan out) {
        floating::float_negate(party, a, out);
      },
      cost_nothing, "-x, local");
  unary(
      m, "absolute",
      [](ot::Party& party, floating::FloatView a, floating::FloatFormat, floating::FloatSpan out) {
        floating::float_absolute(party, a, out);
      },
      cost_nothing, "|x|, local");
  unary(m, "sqrt", floating::float_sqrt, floating::cost_float_sqrt, "square root of the magnitude");
  unary(m, "round_to_integer", floating::float_round_to_integer,
        floating::cost_float_round_to_integer, "the nearest integer, ties to even");
  define_conversions(m);
}

}  // namespace privml::bindings
