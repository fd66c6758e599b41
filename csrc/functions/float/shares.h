// SPDX-License-Identifier: Apache-2.0
// Shares of floating-point numbers (format.h), and how an Evaluator takes them from whole arrays.
#pragma once

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

}  // namespace privml::floating
