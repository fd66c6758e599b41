// SPDX-License-Identifier: Apache-2.0
// Python functions from floating-point operations, on arrays of words (word.h); long arrays are
// divided over the session's lanes.
#pragma once

#include "bindings/elementwise.h"
#include "functions/float/operation.h"
#include "functions/float/word.h"

namespace privml::bindings {

// A lane's part of an argument; words of numbers are unpacked.
inline floating::FloatVector argument(ot::Party& party, std::span<const u64> words,
                                      twopc::LaneRange range, floating::FloatFormat f) {
  floating::FloatVector out(range.count);
  floating::unpack_words(part(words, range), f, party.rank, out);
  return out;
}
template <class T, class Format>
std::span<const T> argument(ot::Party&, std::span<const T> values, twopc::LaneRange range, Format) {
  return part(values, range);
}

// An array of the operation's results; numbers become words of f.
template <class Out, class... Arguments, class... Values>
auto run_float(TwoPartySession& session, const Shape& shape,
               const floating::Operation<Out, Arguments...>& operation, floating::FloatFormat f,
               Values... values) {
  constexpr bool kBits = std::is_same_v<Out, functions::BitShares>;
  Result<std::conditional_t<kBits, u8, u64>> out(session, shape);
  session.run_divided(
      size(out.span),
      [&](ot::Party& party, twopc::LaneRange range) {
        const auto run = [&](auto result) {
          std::apply(
              [&](auto... formats) {
                operation.run(party, argument(party, values, range, formats)..., result);
              },
              operation.formats);
        };
        if constexpr (std::is_same_v<Out, floating::FloatShares>) {
          floating::FloatVector result(range.count);
          run(result.span());
          floating::pack_words(result, f, party.rank, part(out.span, range));
        } else {
          run(part(out.span, range));
        }
      },
      [&](ot::CostMeter& meter, twopc::LaneRange range) { operation.cost(meter, range.count); });
  return out.array;
}

// (session, x, p, q) -> words, of operation(f).
template <class Operation>
auto float_unary(Operation operation) {
  return [operation](TwoPartySession& session, const py::array& x, int p, int q) {
    const floating::FloatFormat f = floating::word_format(p, q);
    return run_float(session, shape_of(x), operation(f), f, view<u64>(x, "x"));
  };
}

// (session, a, b, p, q) -> words or bits, of operation(f).
template <class Operation>
auto float_binary(Operation operation) {
  return [operation](TwoPartySession& session, const py::array& a, const py::array& b, int p,
                     int q) {
    const floating::FloatFormat f = floating::word_format(p, q);
    expect(shape_of(a) == shape_of(b), "a and b: shapes differ");
    return run_float(session, shape_of(a), operation(f), f, view<u64>(a, "a"), view<u64>(b, "b"));
  };
}

}  // namespace privml::bindings
