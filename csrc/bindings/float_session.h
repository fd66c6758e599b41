// SPDX-License-Identifier: Apache-2.0
// Python functions from floating-point protocols, on arrays of words (word.h); long arrays are
// divided over the session's lanes.
#pragma once

#include "bindings/elementwise.h"
#include "functions/float/word.h"

namespace privml::bindings {

// A lane's part of the words, unpacked.
inline floating::FloatVector unpacked(ot::Party& party, std::span<const u64> words,
                                      twopc::LaneRange range, floating::FloatFormat f) {
  floating::FloatVector out(range.count);
  floating::unpack_words(part(words, range), f, party.rank, out);
  return out;
}

// An array of what protocol(party, range, out) gives per lane; cost(meter, n).
template <class Out, class Protocol, class Cost>
auto run_float(TwoPartySession& session, const Shape& shape, Protocol protocol, Cost cost) {
  Result<Out> out(session, shape);
  session.run_divided(
      size(out.span),
      [&](ot::Party& party, twopc::LaneRange range) {
        protocol(party, range, part(out.span, range));
      },
      [&](ot::CostMeter& meter, twopc::LaneRange range) { cost(meter, range.count); });
  return out.array;
}

// The same as words of f.
template <class Protocol, class Cost>
auto run_to_words(TwoPartySession& session, const Shape& shape, floating::FloatFormat f,
                  Protocol protocol, Cost cost) {
  return run_float<u64>(
      session, shape,
      [&](ot::Party& party, twopc::LaneRange range, std::span<u64> words) {
        floating::FloatVector result(range.count);
        protocol(party, range, result.span());
        floating::pack_words(result, f, party.rank, words);
      },
      cost);
}

// (session, x, p, q) -> words, of protocol(party, a, f, out) and cost(meter, n, f).
template <class Protocol, class Cost>
auto float_unary(Protocol protocol, Cost cost) {
  return [protocol, cost](TwoPartySession& session, const py::array& x, int p, int q) {
    const floating::FloatFormat f{p, q};
    floating::expect_word_format(f);
    const auto in = view<u64>(x, "x");
    return run_to_words(
        session, shape_of(x), f,
        [&](ot::Party& party, twopc::LaneRange range, floating::FloatSpan out) {
          protocol(party, unpacked(party, in, range, f), f, out);
        },
        [&](ot::CostMeter& meter, i64 n) { cost(meter, n, f); });
  };
}

// (session, a, b, p, q) -> words (Out = u64), or bits (Out = u8).
template <class Out, class Protocol, class Cost>
auto float_binary(Protocol protocol, Cost cost) {
  return [protocol, cost](TwoPartySession& session, const py::array& a, const py::array& b, int p,
                          int q) {
    const floating::FloatFormat f{p, q};
    floating::expect_word_format(f);
    const auto left = view<u64>(a, "a"), right = view<u64>(b, "b");
    expect(shape_of(a) == shape_of(b), "a and b: shapes differ");
    const auto run = [&](ot::Party& party, twopc::LaneRange range, auto out) {
      protocol(party, unpacked(party, left, range, f), unpacked(party, right, range, f), f, out);
    };
    const auto price = [&](ot::CostMeter& meter, i64 n) { cost(meter, n, f); };
    if constexpr (std::is_same_v<Out, u8>) {
      return run_float<u8>(session, shape_of(a), run, price);
    } else {
      return run_to_words(session, shape_of(a), f, run, price);
    }
  };
}

}  // namespace privml::bindings
