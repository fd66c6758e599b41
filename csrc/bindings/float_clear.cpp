// SPDX-License-Identifier: Apache-2.0
// Python names of the floating-point primitives in the clear.
#include "bindings/float_words.h"
#include "functions/float/clear.h"
#include "functions/float/clear_conversion.h"

namespace privml::bindings {
namespace {

using Value = floating::FloatValue;

void define_operations(py::module_& m) {
  const auto unary = [&](const char* name, const char* doc, auto function) {
    m.def(name, clear_unary_float(function), "x"_a, "p"_a, "q"_a, doc);
  };
  const auto binary = [&](const char* name, const char* doc, auto function) {
    m.def(name, clear_binary_float<u64>(function), "a"_a, "b"_a, "p"_a, "q"_a, doc);
  };
  const auto relation = [&](const char* name, const char* doc, auto function) {
    m.def(name, clear_binary_float<u8>(function), "a"_a, "b"_a, "p"_a, "q"_a, doc);
  };
  using F = floating::FloatFormat;
  binary("clear_add", "a + b",
         [](Value a, Value b, F f) { return floating::clear_float_add(a, b, f); });
  binary("clear_subtract", "a - b",
         [](Value a, Value b, F f) { return floating::clear_float_subtract(a, b, f); });
  binary("clear_multiply", "a b",
         [](Value a, Value b, F f) { return floating::clear_float_multiply(a, b, f); });
  binary("clear_divide", "a / b; x / 0 is infinity, 0 / 0 is 0",
         [](Value a, Value b, F f) { return floating::clear_float_divide(a, b, f); });
  binary("clear_maximum", "the larger one",
         [](Value a, Value b, F) { return floating::clear_float_maximum(a, b); });
  relation("clear_less_than", "[a < b]",
           [](Value a, Value b, F) { return floating::clear_float_less_than(a, b); });
  relation("clear_less_equal", "[a <= b]",
           [](Value a, Value b, F) { return floating::clear_float_less_equal(a, b); });
  relation("clear_equal", "[a = b]",
           [](Value a, Value b, F) { return floating::clear_float_equal(a, b); });
  unary("clear_sqrt", "square root of the magnitude",
        [](Value a, F f) { return floating::clear_float_sqrt(a, f); });
  unary("clear_negate", "-x", [](Value a, F) { return floating::clear_float_negate(a); });
  unary("clear_absolute", "|x|", [](Value a, F) { return floating::clear_float_absolute(a); });
  unary("clear_relu", "max(x, 0)", [](Value a, F f) { return floating::clear_float_relu(a, f); });
  unary("clear_round_to_integer", "the nearest integer, ties to even",
        [](Value a, F f) { return floating::clear_float_round_to_integer(a, f); });
}

void expect_fixed_format(int bits, int scale) {
  expect(bits >= 2 && bits <= 64 && scale >= 0 && scale < 64, "fixed format out of range");
}

void define_clear_conversions(py::module_& m) {
  m.def(
      "clear_from_fixed",
      [](const py::array& x, int bits, int scale, int p, int q) {
        const floating::FloatFormat f = floating::word_format(p, q);
        expect_fixed_format(bits, scale);
        const auto in = view<u64>(x, "x");
        return each<u64>(shape_of(x), [&](i64 i) {
          return floating::word_from_value(
              floating::clear_float_from_fixed(to_signed(in[i], bits), scale, f), f);
        });
      },
      "x"_a, "bits"_a, "scale"_a, "p"_a, "q"_a, "signed x / 2^scale to the nearest float");
  m.def(
      "clear_to_fixed",
      [](const py::array& x, int p, int q, int bits, int scale) {
        const floating::FloatFormat f = floating::word_format(p, q);
        expect_fixed_format(bits, scale);
        const auto in = view<u64>(x, "x");
        return each<u64>(shape_of(x), [&](i64 i) {
          return static_cast<u64>(
              floating::clear_float_to_fixed(floating::value_from_word(in[i], f), f, bits, scale));
        });
      },
      "x"_a, "p"_a, "q"_a, "bits"_a, "scale"_a,
      "x 2^scale to the nearest integer, ties to even, at the ends of `bits` bits beyond them");
  m.def(
      "clear_cast",
      [](const py::array& x, int p, int q, int to_p, int to_q) {
        const floating::FloatFormat from = floating::word_format(p, q);
        const floating::FloatFormat to = floating::word_format(to_p, to_q);
        const auto in = view<u64>(x, "x");
        return each<u64>(shape_of(x), [&](i64 i) {
          return floating::word_from_value(
              floating::clear_float_cast(floating::value_from_word(in[i], from), from, to), to);
        });
      },
      "x"_a, "p"_a, "q"_a, "to_p"_a, "to_q"_a, "to another format, rounded");
}

}  // namespace

void define_clear_float_primitives(py::module_& m) {
  define_operations(m);
  define_clear_conversions(m);
}

}  // namespace privml::bindings
