// SPDX-License-Identifier: Apache-2.0
// Python functions from floating-point protocols, on arrays of words (word.h); long arrays are
// divided over the session's lanes.
#pragma once

#include "bindings/elementwise.h"
#include "secfloat/word.h"

namespace privml::bindings {

// A lane's part of the words, unpacked.
inline FloatVector unpacked(Party& party, std::span<const u64> words, LaneRange range,
                            FloatFormat f) {
  FloatVector out(range.count);
  unpack_words(part(words, range), f, party.rank, out);
  return out;
}

// (session, x, p, q) -> words, of protocol(party, a, f, out) and cost(meter, n, f).
template <class Protocol, class Cost>
auto float_unary(Protocol protocol, Cost cost) {
  return [protocol, cost](TwoPartySession& session, const py::array& x, int p, int q) {
    const FloatFormat f{p, q};
    expect_word_format(f);
    const auto in = view<u64>(x, "x");
    Result<u64> out(shape_of(x));
    session.run_divided(
        size(in),
        [&](Party& party, LaneRange range) {
          const FloatVector a = unpacked(party, in, range, f);
          FloatVector result(range.count);
          protocol(party, a, f, result);
          pack_words(result, f, party.rank, part(out.span, range));
        },
        [&](CostMeter& meter, LaneRange range) { cost(meter, range.count, f); });
    return out.array;
  };
}

// (session, a, b, p, q) -> words (Out = u64), or bits (Out = u8).
template <class Out, class Protocol, class Cost>
auto float_binary(Protocol protocol, Cost cost) {
  return [protocol, cost](TwoPartySession& session, const py::array& a, const py::array& b, int p,
                          int q) {
    const FloatFormat f{p, q};
    expect_word_format(f);
    const auto left = view<u64>(a, "a"), right = view<u64>(b, "b");
    expect(shape_of(a) == shape_of(b), "a and b: shapes differ");
    Result<Out> out(shape_of(a));
    session.run_divided(
        size(left),
        [&](Party& party, LaneRange range) {
          const FloatVector x = unpacked(party, left, range, f);
          const FloatVector y = unpacked(party, right, range, f);
          if constexpr (std::is_same_v<Out, u8>) {
            protocol(party, x, y, f, part(out.span, range));
          } else {
            FloatVector result(range.count);
            protocol(party, x, y, f, result);
            pack_words(result, f, party.rank, part(out.span, range));
          }
        },
        [&](CostMeter& meter, LaneRange range) { cost(meter, range.count, f); });
    return out.array;
  };
}

}  // namespace privml::bindings
