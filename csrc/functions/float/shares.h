// SPDX-License-Identifier: Apache-2.0
// Shares of floating-point numbers (format.h), how an Evaluator takes them from whole arrays, and
// operations on whole arrays, chunk by chunk, with their cost.
#pragma once

#include "functions/evaluator/chunks.h"
#include "functions/evaluator/evaluator.h"
#include "functions/float/format.h"

namespace privml::floating {

struct FloatShares {
  functions::BitShares zero, sign;
  functions::RingShares exponent, mantissa;
};

// The evaluator.n numbers from `begin` on.
FloatShares load_floats(const functions::Evaluator& evaluator, FloatView a, FloatFormat f,
                        i64 begin);
void store_floats(const functions::Evaluator& evaluator, const FloatShares& a, FloatSpan out,
                  i64 begin);

// Numbers that an operation works on at once; each chunk takes the operation's depth.
inline constexpr i64 kFloatChunk = i64{1} << 14;

// Apply operation(evaluator, a) and operation(evaluator, a, b) to numbers of f.
template <class Operation>
void evaluate_unary(ot::Party& party, FloatView a, FloatFormat f, FloatSpan out,
                    Operation&& operation) {
  functions::evaluate_chunks(
      party, a.size(), kFloatChunk, [&](functions::Evaluator& evaluator, i64 begin) {
        store_floats(evaluator, operation(evaluator, load_floats(evaluator, a, f, begin)), out,
                     begin);
      });
}

template <class Operation>
void cost_unary(ot::CostMeter& meter, i64 n, FloatFormat f, Operation&& operation) {
  functions::cost_chunks(meter, n, kFloatChunk, [&](functions::Evaluator& evaluator, i64) {
    operation(evaluator, load_floats(evaluator, {}, f, 0));
  });
}

template <class Operation>
void evaluate_binary(ot::Party& party, FloatView a, FloatView b, FloatFormat f, FloatSpan out,
                     Operation&& operation) {
  functions::evaluate_chunks(
      party, a.size(), kFloatChunk, [&](functions::Evaluator& evaluator, i64 begin) {
        store_floats(evaluator,
                     operation(evaluator, load_floats(evaluator, a, f, begin),
                               load_floats(evaluator, b, f, begin)),
                     out, begin);
      });
}

template <class Operation>
void cost_binary(ot::CostMeter& meter, i64 n, FloatFormat f, Operation&& operation) {
  functions::cost_chunks(meter, n, kFloatChunk, [&](functions::Evaluator& evaluator, i64) {
    const FloatShares none = load_floats(evaluator, {}, f, 0);
    operation(evaluator, none, none);
  });
}

}  // namespace privml::floating
