// SPDX-License-Identifier: Apache-2.0
// An algorithm of steps.h on whole arrays, chunk by chunk, and its cost.
#pragma once

#include "secfloat/steps.h"
#include "twopc/chunk.h"

namespace privml {

// Numbers that an operation works on at once; each chunk takes the operation's depth.
inline constexpr i64 kFloatChunk = i64{1} << 14;

// body(steps, begin) for consecutive ranges, each on correlations reserved in one go; and the same
// on a meter.
template <class Body>
void run_steps(Party& party, i64 n, Body&& body) {
  in_chunks(
      party, n,
      [&](CostMeter& meter, i64 count) {
        Steps steps(meter, count);
        body(steps, 0);
      },
      [&](i64 begin, i64 count) {
        Steps steps(party, count);
        body(steps, begin);
      },
      kFloatChunk);
}

template <class Body>
void cost_steps(CostMeter& meter, i64 n, Body&& body) {
  cost_in_chunks(
      meter, n,
      [&](CostMeter& inner, i64 count) {
        Steps steps(inner, count);
        body(steps, 0);
      },
      kFloatChunk);
}

// operation(steps, a) and operation(steps, a, b) of numbers of f, to numbers.
template <class Operation>
void run_unary_steps(Party& party, FloatView a, FloatFormat f, FloatSpan out,
                     Operation&& operation) {
  run_steps(party, a.size(), [&](Steps& steps, i64 begin) {
    steps.store(operation(steps, steps.load(a, f, begin)), out, begin);
  });
}

template <class Operation>
void cost_unary_steps(CostMeter& meter, i64 n, FloatFormat f, Operation&& operation) {
  cost_steps(meter, n, [&](Steps& steps, i64) { operation(steps, steps.load({}, f, 0)); });
}

template <class Operation>
void run_binary_steps(Party& party, FloatView a, FloatView b, FloatFormat f, FloatSpan out,
                      Operation&& operation) {
  run_steps(party, a.size(), [&](Steps& steps, i64 begin) {
    steps.store(operation(steps, steps.load(a, f, begin), steps.load(b, f, begin)), out, begin);
  });
}

template <class Operation>
void cost_binary_steps(CostMeter& meter, i64 n, FloatFormat f, Operation&& operation) {
  cost_steps(meter, n, [&](Steps& steps, i64) {
    const FloatShares none = steps.load({}, f, 0);
    operation(steps, none, none);
  });
}

}  // namespace privml
