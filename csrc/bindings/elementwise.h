// SPDX-License-Identifier: Apache-2.0
// Python functions from protocols that map arrays to arrays of the same shape; long arrays are
// divided over the session's lanes.
#pragma once

#include <utility>

#include "bindings/session.h"

namespace privml::bindings {

template <class T>
i64 size(std::span<T> values) {
  return static_cast<i64>(values.size());
}

// A lane's part of an array that has `each` values per element; of an operand that this party does
// not pass, nothing.
template <class T>
std::span<T> part(std::span<T> values, twopc::LaneRange range, i64 each = 1) {
  if (values.empty()) return values;
  return values.subspan(range.begin * each, range.count * each);
}

// (session, x, parameters...) -> out
template <class In, class Out, class... Parameters>
auto unary(void (*protocol)(ot::Party&, std::span<const In>, std::type_identity_t<Parameters>...,
                            std::span<Out>),
           void (*cost)(ot::CostMeter&, i64, std::type_identity_t<Parameters>...)) {
  return [protocol, cost](TwoPartySession& session, const py::array& x, Parameters... parameters) {
    const auto in = view<In>(x, "x");
    Result<Out> out(session, shape_of(x));
    session.run_divided(
        size(in),
        [&](ot::Party& party, twopc::LaneRange range) {
          protocol(party, part(in, range), parameters..., part(out.span, range));
        },
        [&](ot::CostMeter& meter, twopc::LaneRange range) {
          cost(meter, range.count, parameters...);
        });
    return out.array;
  };
}

// (session, x, parameters...) -> (first, second)
template <class In, class First, class Second, class... Parameters>
auto unary_pair(void (*protocol)(ot::Party&, std::span<const In>,
                                 std::type_identity_t<Parameters>..., std::span<First>,
                                 std::span<Second>),
                void (*cost)(ot::CostMeter&, i64, std::type_identity_t<Parameters>...)) {
  return [protocol, cost](TwoPartySession& session, const py::array& x, Parameters... parameters) {
    const auto in = view<In>(x, "x");
    Result<First> first(session, shape_of(x));
    Result<Second> second(session, shape_of(x));
    session.run_divided(
        size(in),
        [&](ot::Party& party, twopc::LaneRange range) {
          protocol(party, part(in, range), parameters..., part(first.span, range),
                   part(second.span, range));
        },
        [&](ot::CostMeter& meter, twopc::LaneRange range) {
          cost(meter, range.count, parameters...);
        });
    return py::make_tuple(first.array, second.array);
  };
}

// (session, a, b, parameters...) -> out, for arrays of one shape
template <class In, class Out, class... Parameters>
auto binary(void (*protocol)(ot::Party&, std::span<const In>, std::span<const In>,
                             std::type_identity_t<Parameters>..., std::span<Out>),
            void (*cost)(ot::CostMeter&, i64, std::type_identity_t<Parameters>...)) {
  return [protocol, cost](TwoPartySession& session, const py::array& a, const py::array& b,
                          Parameters... parameters) {
    const auto left = view<In>(a, "a");
    const auto right = view<In>(b, "b");
    expect(shape_of(a) == shape_of(b), "a and b: shapes differ");
    Result<Out> out(session, shape_of(a));
    session.run_divided(
        size(left),
        [&](ot::Party& party, twopc::LaneRange range) {
          protocol(party, part(left, range), part(right, range), parameters...,
                   part(out.span, range));
        },
        [&](ot::CostMeter& meter, twopc::LaneRange range) {
          cost(meter, range.count, parameters...);
        });
    return out.array;
  };
}

}  // namespace privml::bindings
