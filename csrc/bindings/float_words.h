// SPDX-License-Identifier: Apache-2.0
// Python functions from floating-point functions in the clear, on arrays of words (word.h).
#pragma once

#include "bindings/elementwise.h"
#include "functions/float/value.h"
#include "functions/float/word.h"

namespace privml::bindings {

// An array of function(i).
template <class Out, class Function>
auto each(const Shape& shape, Function function) {
  Result<Out> out(shape);
  {
    const py::gil_scoped_release without_interpreter;
    for (i64 i = 0; i < size(out.span); ++i) out.span[i] = function(i);
  }
  return out.array;
}

// (x, p, q) -> words, function(value, format).
template <class Function>
auto clear_unary_float(Function function) {
  return [function](const py::array& x, int p, int q) {
    const floating::FloatFormat f = floating::word_format(p, q);
    const auto in = view<u64>(x, "x");
    return each<u64>(shape_of(x), [&](i64 i) {
      return floating::word_from_value(function(floating::value_from_word(in[i], f), f), f);
    });
  };
}

// (a, b, p, q) -> words (Out = u64), or bits (Out = u8).
template <class Out, class Function>
auto clear_binary_float(Function function) {
  return [function](const py::array& a, const py::array& b, int p, int q) {
    const floating::FloatFormat f = floating::word_format(p, q);
    const auto left = view<u64>(a, "a"), right = view<u64>(b, "b");
    expect(shape_of(a) == shape_of(b), "a and b: shapes differ");
    return each<Out>(shape_of(a), [&](i64 i) {
      const auto result = function(floating::value_from_word(left[i], f),
                                   floating::value_from_word(right[i], f), f);
      if constexpr (std::is_same_v<Out, u8>) {
        return static_cast<u8>(result);
      } else {
        return floating::word_from_value(result, f);
      }
    });
  };
}

}  // namespace privml::bindings
