// SPDX-License-Identifier: Apache-2.0
// Python names of the floating-point protocols.
#include "bindings/secfloat_session.h"
#include "secfloat/addition.h"
#include "secfloat/comparison.h"
#include "secfloat/multiplication.h"

namespace privml::bindings {
namespace {

template <class Protocol>
void binary(py::module_& m, const char* name, Protocol protocol,
            void (*cost)(CostMeter&, i64, FloatFormat), const char* doc) {
  m.def(name, float_binary<u64>(protocol, cost), "session"_a, "a"_a, "b"_a, "p"_a, "q"_a, doc);
}

template <class Protocol>
void relation(py::module_& m, const char* name, Protocol protocol,
              void (*cost)(CostMeter&, i64, FloatFormat), const char* doc) {
  m.def(name, float_binary<u8>(protocol, cost), "session"_a, "a"_a, "b"_a, "p"_a, "q"_a, doc);
}

template <class Protocol>
void unary(py::module_& m, const char* name, Protocol protocol,
           void (*cost)(CostMeter&, i64, FloatFormat), const char* doc) {
  m.def(name, float_unary(protocol, cost), "session"_a, "x"_a, "p"_a, "q"_a, doc);
}

void cost_nothing(CostMeter&, i64, FloatFormat) {}

}  // namespace

void define_float_primitives(py::module_& m) {
  binary(m, "add", float_add, cost_float_add, "a + b");
  binary(m, "subtract", float_subtract, cost_float_subtract, "a - b");
  binary(m, "multiply", float_multiply, cost_float_multiply, "a b");
  binary(m, "maximum", float_maximum, cost_float_maximum, "the larger one");
  relation(m, "less_than", float_less_than, cost_float_less_than, "XOR shares of [a < b]");
  relation(m, "less_equal", float_less_equal, cost_float_less_equal, "XOR shares of [a <= b]");
  relation(m, "equal", float_equal, cost_float_equal, "XOR shares of [a = b]");
  unary(m, "relu", float_relu, cost_float_relu, "max(x, 0)");
  unary(
      m, "negate",
      [](Party& party, FloatView a, FloatFormat, FloatSpan out) { float_negate(party, a, out); },
      cost_nothing, "-x, local");
  unary(
      m, "absolute",
      [](Party& party, FloatView a, FloatFormat, FloatSpan out) { float_absolute(party, a, out); },
      cost_nothing, "|x|, local");
}

}  // namespace privml::bindings
