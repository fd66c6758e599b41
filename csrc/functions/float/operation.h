// SPDX-License-Identifier: Apache-2.0
// Runs an algorithm written for an Evaluator on whole arrays, chunk by chunk; and its cost.
#pragma once

#include "functions/float/evaluator.h"
#include "twopc/session/chunk.h"

namespace privml {

// Numbers that an operation works on at once; each chunk takes the operation's depth.
inline constexpr i64 kFloatChunk = i64{1} << 14;

// Calls body(evaluator, begin) for consecutive ranges, each on correlations reserved in one go; and
// the same on a meter.
template <class Body>
void evaluate_chunks(Party& party, i64 n, Body&& body) {
  in_chunks(
      party, n,
      [&](CostMeter& meter, i64 count) {
        Evaluator evaluator(meter, count);
        body(evaluator, 0);
      },
      [&](i64 begin, i64 count) {
        Evaluator evaluator(party, count);
        body(evaluator, begin);
      },
      kFloatChunk);
}

template <class Body>
void cost_chunks(CostMeter& meter, i64 n, Body&& body) {
  cost_in_chunks(
      meter, n,
      [&](CostMeter& inner, i64 count) {
        Evaluator evaluator(inner, count);
        body(evaluator, 0);
      },
      kFloatChunk);
}

// Apply operation(evaluator, a) and operation(evaluator, a, b) to numbers of f.
template <class Operation>
void evaluate_unary(Party& party, FloatView a, FloatFormat f, FloatSpan out,
                    Operation&& operation) {
  evaluate_chunks(party, a.size(), [&](Evaluator& evaluator, i64 begin) {
    evaluator.store(operation(evaluator, evaluator.load(a, f, begin)), out, begin);
  });
}

template <class Operation>
void cost_unary(CostMeter& meter, i64 n, FloatFormat f, Operation&& operation) {
  cost_chunks(meter, n,
              [&](Evaluator& evaluator, i64) { operation(evaluator, evaluator.load({}, f, 0)); });
}

template <class Operation>
void evaluate_binary(Party& party, FloatView a, FloatView b, FloatFormat f, FloatSpan out,
                     Operation&& operation) {
  evaluate_chunks(party, a.size(), [&](Evaluator& evaluator, i64 begin) {
    evaluator.store(operation(evaluator, evaluator.load(a, f, begin), evaluator.load(b, f, begin)),
                    out, begin);
  });
}

template <class Operation>
void cost_binary(CostMeter& meter, i64 n, FloatFormat f, Operation&& operation) {
  cost_chunks(meter, n, [&](Evaluator& evaluator, i64) {
    const FloatShares none = evaluator.load({}, f, 0);
    operation(evaluator, none, none);
  });
}

}  // namespace privml
