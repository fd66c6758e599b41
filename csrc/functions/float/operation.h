// SPDX-License-Identifier: Apache-2.0
// An operation on whole arrays, element by element: one definition runs at a party and is counted
// on a meter, chunk by chunk.
#pragma once

#include <functional>
#include <tuple>

#include "functions/evaluator/chunks.h"
#include "functions/float/shares.h"

namespace privml::floating {

// Elements that an operation works on at once; each chunk takes the operation's depth.
inline constexpr i64 kFloatChunk = i64{1} << 14;

// Arrays of numbers of a format, of words of which the low bits count, and of XOR-shared bits.
struct BitFormat {};
template <class Shares>
struct ArrayOf;
template <>
struct ArrayOf<FloatShares> {
  using Format = FloatFormat;
  using View = FloatView;
  using Span = FloatSpan;
};
template <>
struct ArrayOf<functions::RingShares> {
  using Format = int;  // the width
  using View = std::span<const u64>;
  using Span = std::span<u64>;
};
template <>
struct ArrayOf<functions::BitShares> {
  using Format = BitFormat;
  using View = std::span<const u8>;
  using Span = std::span<u8>;
};

// The evaluator.n elements from `begin` on.
inline FloatShares load(const functions::Evaluator& evaluator, FloatView a, FloatFormat f,
                        i64 begin) {
  return load_floats(evaluator, a, f, begin);
}
inline functions::RingShares load(const functions::Evaluator& evaluator, std::span<const u64> x,
                                  int width, i64 begin) {
  return evaluator.map(evaluator.n, width, [&](i64 i) { return x[begin + i]; });
}
inline functions::BitShares load(const functions::Evaluator& evaluator, std::span<const u8> bits,
                                 BitFormat, i64 begin) {
  return evaluator.map_bits(evaluator.n, [&](i64 i) { return bits[begin + i]; });
}

inline void store(const functions::Evaluator& evaluator, const FloatShares& a, FloatSpan out,
                  i64 begin) {
  store_floats(evaluator, a, out, begin);
}
template <class T>
void store(const functions::Evaluator& evaluator, const functions::Shares<T>& x, std::span<T> out,
           i64 begin) {
  evaluator.local(evaluator.n, [&](i64 i) { out[begin + i] = x[i]; });
}

// What makes an Operation has checked its formats.
template <class Result, class... Arguments>
struct Operation {
  std::tuple<typename ArrayOf<Arguments>::Format...> formats;  // of the arguments
  std::function<Result(functions::Evaluator&, const Arguments&...)> steps;

  // Throws InvalidArgument if lengths differ. out may be an argument.
  void run(ot::Party& party, typename ArrayOf<Arguments>::View... a,
           typename ArrayOf<Result>::Span out) const {
    const i64 n = static_cast<i64>(out.size());
    expect(((static_cast<i64>(a.size()) == n) && ...), "float operation: lengths differ");
    functions::evaluate_chunks(party, n, kFloatChunk,
                               [&](functions::Evaluator& evaluator, i64 begin) {
                                 store(evaluator, result(evaluator, begin, a...), out, begin);
                               });
  }
  void cost(ot::CostMeter& meter, i64 n) const {
    functions::cost_chunks(meter, n, kFloatChunk, [&](functions::Evaluator& evaluator, i64) {
      result(evaluator, 0, typename ArrayOf<Arguments>::View{}...);
    });
  }

 private:
  Result result(functions::Evaluator& evaluator, i64 begin,
                typename ArrayOf<Arguments>::View... a) const {
    return std::apply(
        [&](auto... format) { return steps(evaluator, load(evaluator, a, format, begin)...); },
        formats);
  }
};

using FloatUnary = Operation<FloatShares, FloatShares>;
using FloatBinary = Operation<FloatShares, FloatShares, FloatShares>;
using FloatRelation = Operation<functions::BitShares, FloatShares, FloatShares>;

// steps(evaluator, arguments..., parameters...) of given parameters.
template <class Steps, class... Parameters>
auto with(Steps steps, Parameters... parameters) {
  return [=](functions::Evaluator& evaluator, const auto&... arguments) {
    return steps(evaluator, arguments..., parameters...);
  };
}

// A function of float32.
using FunctionSteps = FloatShares (*)(functions::Evaluator&, const FloatShares&);
inline FloatUnary float32_function(FunctionSteps steps) { return {{kFloat32}, steps}; }

}  // namespace privml::floating
